import { describe, expect, it } from "vitest";
import type { MetricSeries, Runbook, RunbookRun } from "../../api/types";
import { answeredMeanwhile, answerLabel, answersOf } from "./answers";
import { demand, judge, measure, newest } from "./criterion";
import { draftOf, fill, valuesOf } from "./params";
import { byPhase, currentStep, evidenceOf, phaseMs, sayStep, tally, tookMs } from "./progress";
import type { Criterion, StepState } from "./types";

const at = (seconds: number) => new Date(Date.UTC(2026, 10, 30, 12, 0, seconds)).toISOString();
const begin = Date.parse(at(0));

function step(id: string, over: Partial<StepState["step"]> = {}, state: Partial<StepState> = {}) {
  return {
    step: {
      id,
      phase: "isolate",
      title: `Step ${id}`,
      kind: "check",
      command: "",
      expect: "",
      on_failure: "ask",
      ...over,
    },
    status: "pending",
    attempt: 1,
    answers: [],
    ...state,
  } as StepState;
}

function runOf(steps: StepState[], over: Partial<RunbookRun> = {}): RunbookRun {
  return {
    id: "r",
    runbook: "slow-model",
    version: "v",
    title: "Slow model",
    params: {},
    started_by: "Alice",
    status: "running",
    current: 0,
    steps,
    started_at: at(0),
    ...over,
  };
}

describe("a criterion", () => {
  const below: Criterion = { query: "q", is: "<", value: 0.05, unit: "ratio" };

  it.each([
    ["<", [0.04], "pass", 0.04],
    ["<", [0.05], "fail", 0.05],
    ["<=", [0.05], "pass", 0.05],
    [">", [0.05], "fail", 0.05],
    [">=", [0.05], "pass", 0.05],
    // Every series must hold; the worst one is shown.
    ["<", [0.01, 0.2], "fail", 0.2],
    [">", [0.01, 0.2], "fail", 0.01],
    // A value that fails outweighs missing data; else what is not seen is not good.
    ["<", [null, 0.2], "fail", 0.2],
    ["<", [null, 0.01], "no_data", 0.01],
    ["<", [Number.NaN], "no_data", null],
    ["<", [], "no_data", null],
  ] as const)("%s 0.05 of %j: %s", (is, values, verdict, value) => {
    expect(judge({ ...below, is }, [...values])).toEqual({ verdict, value });
  });

  it("says what it demands, in its unit", () => {
    expect(demand(below)).toBe("must be below 5 %");
    expect(demand({ query: "q", is: ">=", value: 20, unit: "requests" })).toBe(
      "must be at least 20 requests",
    );
    expect(measure(0.0312, "s")).toBe("0.031 s");
    expect(measure(1234, "")).toBe("1,234");
    expect(measure(null, "s")).toBe("no data");
    expect(measure(0, "ratio")).toBe("0 %");
  });

  it("takes no old point for the present", () => {
    const series = (seconds: number) =>
      ({ labels: {}, points: [{ at: at(seconds), value: 1 }] }) as MetricSeries;
    expect(newest([series(0), series(90)], begin + 100_000)).toEqual([null, 1]);
  });
});

describe("the buttons of a step", () => {
  const labels = (state: StepState) => answersOf(state).map(({ label }) => label);

  it("of an action show the plan first, and stopping is asked once more", () => {
    const state = step(
      "a",
      { kind: "action" },
      { status: "asking", answers: ["stop", "skip", "run"] },
    );
    expect(labels(state)).toEqual(["Run…", "Skip", "Stop the run…"]);
    expect(answersOf(state).map(({ plan, sure }) => [plan, sure])).toEqual([
      [true, false],
      [false, false],
      [false, true],
    ]);
  });

  it("of a check that failed try again without a plan", () => {
    const state = step("c", {}, { status: "failed", answers: ["retry", "skip", "stop"] });
    expect(labels(state)).toEqual(["Try again", "Skip", "Stop the run…"]);
    expect(answersOf(state)[0]?.plan).toBe(false);
    const action = step("a", { kind: "action" }, { status: "failed", answers: ["retry"] });
    expect(answersOf(action)[0]).toMatchObject({ label: "Try again…", plan: true });
  });

  it("of a decision are its choices, with where they lead", () => {
    const choices = [
      { id: "yes", label: "Yes, undo it" },
      { id: "no", label: "No change found", goto: "later" },
      { id: "over", label: "It was nothing", goto: "end" },
    ];
    const state = step(
      "d",
      { kind: "decision", choices },
      { status: "asking", answers: ["yes", "no", "over"] },
    );
    const steps = [state, step("later", { title: "Replicas" })];
    expect(answersOf(state, steps).map(({ label, hint }) => [label, hint])).toEqual([
      ["Yes, undo it", "Goes on with the next step."],
      ["No change found", "Goes on with “Replicas”."],
      ["It was nothing", "Ends the run well."],
    ]);
    expect(answerLabel(state, "no")).toBe("No change found");
  });

  it("of a server that is newer are shown as they are", () => {
    const state = step("c", {}, { status: "asking", answers: ["postpone"] });
    expect(labels(state)).toEqual(["postpone"]);
    expect(answersOf(step("c"))).toEqual([]);
  });
});

describe("an answer that came too late", () => {
  it("names who answered what", () => {
    const done = step("a", { kind: "action" }, { status: "running", by: "Bob", choice: "run" });
    expect(answeredMeanwhile(runOf([done]), "a", 1)).toBe("Bob answered “Run” first.");
  });

  it("is none while the step still asks for the same attempt", () => {
    const asking = step("a", {}, { status: "failed", answers: ["retry"] });
    expect(answeredMeanwhile(runOf([asking]), "a", 1)).toBeUndefined();
    const again = step("a", {}, { status: "failed", answers: ["retry"], attempt: 2, by: "Bob" });
    expect(answeredMeanwhile(runOf([again]), "a", 1)).toContain("Bob answered first");
    expect(answeredMeanwhile(runOf([asking]), "gone", 1)).toBeUndefined();
  });

  it("tells of a run that was cancelled", () => {
    const run = runOf([step("a")], { status: "cancelled", ended_by: "Bob" });
    expect(answeredMeanwhile(run, "a", 1)).toBe("Bob cancelled the run first.");
  });
});

describe("progress", () => {
  const steps = [
    step("a", {}, { status: "passed", started_at: at(0), ended_at: at(40) }),
    step("b", {}, { status: "skipped" }),
    step("c", { phase: "locate" }, { status: "failed", answers: ["retry"], started_at: at(40) }),
    step("d", { phase: "locate" }),
  ];
  const run = runOf(steps, { status: "waiting", current: 2 });

  it("is told by phase, and a phase without steps is left out", () => {
    expect(byPhase(run).map(({ phase, state, over }) => [phase, state, over])).toEqual([
      ["isolate", "done", 2],
      ["locate", "now", 0],
    ]);
    expect(byPhase(run)[1]?.steps.map(({ number }) => number)).toEqual([3, 4]);
  });

  it("of a run that ended leaves nothing to come", () => {
    const done = step("c", { phase: "locate" }, { status: "passed" });
    const rest = [done, step("d", { phase: "locate" }), step("e", { phase: "restore" })];
    const ended = runOf([...steps.slice(0, 2), ...rest], { status: "cancelled", current: 3 });
    expect(byPhase(ended).map(({ state }) => state)).toEqual(["done", "ended", "not reached"]);
  });

  it("is said in one sentence", () => {
    expect(sayStep(run)).toBe("Step 3 of 4, Step c: failed, it asks what to do.");
    const asking = runOf([step("a", { kind: "decision" }, { status: "asking" })]);
    expect(sayStep(asking)).toBe("Step 1 of 1, Step a: a decision is needed.");
    expect(sayStep(runOf([], { status: "cancelled" }))).toBe("The run has been cancelled.");
    expect(currentStep(runOf(steps, { status: "failed", current: 2 }))).toBeUndefined();
  });

  it("shows a decision what it rests on", () => {
    const criterion: Criterion = { query: "q", is: "<", value: 1 };
    const tried = step("a", { kind: "action", criterion }, { status: "failed" });
    const skipped = step("b", { kind: "action", criterion }, { status: "skipped" });
    const later = step("d", { phase: "locate", kind: "decision" });
    const asked = runOf([tried, skipped, step("c", { kind: "decision" }), later]);
    expect(evidenceOf(asked, 2)).toBe(tried);
    expect(evidenceOf(asked, 3)).toBeUndefined();
  });

  it("is counted and timed", () => {
    expect(tally(run)).toBe("1 passed, 1 failed, 1 skipped, 1 not reached");
    const [isolate, locate] = byPhase(run);
    expect(phaseMs(isolate?.steps ?? [], begin)).toBe(40_000);
    expect(phaseMs(locate?.steps ?? [], begin + 100_000)).toBe(60_000);
    expect(phaseMs([{ number: 1, state: step("x") }], begin)).toBeUndefined();
    expect(tookMs(step("x"), begin)).toBeUndefined();
  });
});

describe("a runbook's parameters", () => {
  const runbook = {
    params: [
      { name: "service", kind: "service", required: true, help: "" },
      { name: "rps", kind: "number", required: false, default: "8", help: "" },
    ],
  } as unknown as Runbook;

  it("begin with what was suggested, then with the defaults, and are sent as texts", () => {
    const draft = draftOf(runbook, { service: "chat" });
    expect(draft).toEqual({ service: "chat", rps: "8" });
    expect(valuesOf(runbook, { service: " chat ", rps: "" })).toEqual({ service: "chat" });
    expect(valuesOf(runbook, { service: "", rps: "8" })).toBeUndefined();
    expect(valuesOf(runbook, { service: "chat", rps: "many" })).toBeUndefined();
  });

  it("are filled into texts; what is missing stays to be seen", () => {
    const title = "Limit $" + "{service} to $" + "{rps}";
    expect(fill(title, { service: "chat", rps: " " })).toBe("Limit chat to $" + "{rps}");
  });
});
