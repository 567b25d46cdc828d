import { act, configure, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import type { Runbook, RunbookRun, RunbookStep } from "../../api/types";
import { alice, FakeEventSource, open } from "../../test/render";

// Pages are loaded when they are first opened, which a busy machine takes its time for.
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 10_000 });

const limit: RunbookStep = {
  id: "limit",
  phase: "isolate",
  title: "Trip the breaker of llm",
  kind: "action",
  command: "Force the breaker open.",
  expect: "Errors fall below 5 %.",
  on_failure: "ask",
  action: "trip_breaker",
  params: { dependency: "llm" },
  ttl: "10m0s",
  criterion: { query: 'errors{service="chat"}', is: "<", value: 0.05, unit: "ratio" },
};
const change: RunbookStep = {
  id: "change",
  phase: "locate",
  title: "Was there a change?",
  kind: "decision",
  command: "Look at the calendar.",
  expect: "A rollout.",
  on_failure: "ask",
  question: "Did chat change?",
  choices: [
    { id: "undo", label: "Yes, undo it" },
    { id: "none", label: "No change found", goto: "end" },
  ],
};
const runbook: Runbook = {
  id: "slow-model",
  version: "abcdef0123456789",
  title: "Slow model",
  summary: "The model answers slowly.",
  owner: "inference",
  params: [
    { name: "service", kind: "service", required: true, help: "", choices: ["chat", "mail"] },
    { name: "dependency", kind: "dependency", required: true, help: "", choices: ["llm"] },
  ],
  steps: [{ ...limit, title: "Trip the breaker of $" + "{dependency}" }, change],
};
const asking: RunbookRun = {
  id: "rr1",
  runbook: "slow-model",
  version: runbook.version,
  title: "Slow model",
  params: { service: "chat", dependency: "llm", environment: "prod" },
  started_by: "Alice",
  status: "waiting",
  current: 0,
  started_at: "2026-11-30T12:00:00Z",
  steps: [
    { step: limit, status: "asking", attempt: 1, answers: ["run", "skip", "stop"] },
    { step: change, status: "pending", attempt: 1, answers: [] },
  ],
};
const pressed: RunbookRun = {
  ...asking,
  status: "running",
  steps: [
    {
      step: limit,
      status: "running",
      attempt: 1,
      by: "Alice",
      choice: "run",
      started_at: "2026-11-30T12:00:05Z",
      deadline: new Date(Date.now() + 90_000).toISOString(),
      answers: [],
    },
    { step: change, status: "pending", attempt: 1, answers: [] },
  ],
};
const deciding: RunbookRun = {
  ...asking,
  current: 1,
  steps: [
    { step: limit, status: "passed", attempt: 1, value: 0.01, detail: "1 %", answers: [] },
    { step: change, status: "asking", attempt: 1, answers: ["undo", "none"] },
  ],
};
const spec = {
  name: "trip_breaker",
  title: "Trip breaker",
  summary: "Refuse calls to a dependency.",
  role: "responder",
  dangerous: false,
  default_ttl: "15m0s",
  max_ttl: "1h0m0s",
  params: [{ name: "dependency", kind: "dependency", required: true, help: "", choices: ["llm"] }],
};
const plan = {
  action: "trip_breaker",
  params: { dependency: "llm" },
  hash: "h1",
  summary: "Trip the breaker of llm",
  layers: [],
  diff: [{ path: "breakers.llm.forced", before: null, after: "open" }],
  blast: { share: null, requests: 0, routes: [], gateways: [] },
  warnings: [],
  service: "chat",
  ttl_seconds: 600,
  leased: [],
};
const answers = {
  "GET /api/v1/actions": { body: { items: [spec] } },
  "GET /api/v1/runbooks": { body: { items: [runbook] } },
  "GET /api/v1/runbook-runs": { body: { items: [] } },
  "GET /api/v1/query_range": {
    body: {
      items: [{ labels: {}, points: [{ at: new Date().toISOString(), value: 0.23 }] }],
      source: "embedded",
    },
  },
  "POST /api/v1/actions/trip_breaker/plan": { body: plan },
  "GET /api/v1/runbook-runs/rr1": { body: asking },
};

it("starts a runbook once, with the steps that will come in sight", async () => {
  const { sent, router } = open("/runbooks", {
    ...answers,
    "POST /api/v1/runbook-runs": { status: 201, body: asking },
  });
  await userEvent.click(await screen.findByTestId("start-runbook"));
  const dialog = await screen.findByRole("dialog");
  const confirm = within(dialog).getByTestId("confirm-start");
  expect(confirm.getAttribute("aria-disabled")).toBe("true");
  await userEvent.selectOptions(within(dialog).getByLabelText(/Service/), "chat");
  await userEvent.selectOptions(within(dialog).getByLabelText(/Dependency/), "llm");
  expect(within(dialog).getByText("Trip the breaker of llm")).toBeTruthy();
  await userEvent.dblClick(within(dialog).getByTestId("confirm-start"));

  await waitFor(() => expect(router.state.location.pathname).toBe("/runbooks/runs/rr1"));
  const starts = sent.filter((one) => one.method === "POST" && one.path.endsWith("/runbook-runs"));
  expect(new Set(starts.map((one) => one.headers.get("Idempotency-Key"))).size).toBe(1);
  expect(starts[0]?.body).toEqual({
    runbook: "slow-model",
    params: { service: "chat", dependency: "llm" },
  });
});

it("shows the plan of an action step before it is run", async () => {
  let run = asking;
  const { sent, count } = open("/runbooks/runs/rr1", {
    ...answers,
    "GET /api/v1/runbook-runs/rr1": () => ({ body: run }),
    "POST /api/v1/runbook-runs/rr1/answer": () => {
      run = pressed;
      return { body: run };
    },
  });
  const step = (await screen.findAllByTestId("step"))[0] as HTMLElement;
  expect(step.getAttribute("aria-current")).toBe("step");
  expect(await within(step).findByText("23 %")).toBeTruthy();
  expect(within(step).getByText("does not hold")).toBeTruthy();
  expect(within(step).getByText("must be below 5 %")).toBeTruthy();

  await userEvent.click(within(step).getByTestId("answer-run"));
  expect(await screen.findByText("breakers.llm.forced")).toBeTruthy();
  expect(count("POST", "/api/v1/runbook-runs/rr1/answer")).toBe(0);
  const planned = sent.find((one) => one.path.endsWith("/plan"));
  expect(planned?.body).toEqual({ params: { dependency: "llm" }, ttl: "10m0s" });

  await userEvent.dblClick(screen.getByTestId("confirm-step"));
  await waitFor(() => expect(screen.queryByTestId("confirm-step")).toBeNull());
  expect(count("POST", "/api/v1/runbook-runs/rr1/answer")).toBe(1);
  expect(sent.find((one) => one.path.endsWith("/answer"))?.body).toEqual({
    step: "limit",
    attempt: 1,
    answer: "run",
  });
  expect(screen.getByTestId("said").textContent).toContain("Step 1 of 2");
  expect(screen.getByTestId("said").textContent).toContain("running");
  expect(screen.getByTestId("countdown").textContent).toMatch(/^1:[23]\d$/);
  expect(screen.getByText(/Alice answered “Run”/)).toBeTruthy();
});

it("answers a decision by the label of its choice, with a note", async () => {
  const { sent } = open("/runbooks/runs/rr1", {
    ...answers,
    "GET /api/v1/runbook-runs/rr1": { body: deciding },
    "POST /api/v1/runbook-runs/rr1/answer": { body: deciding },
  });
  expect(await screen.findByText("Did chat change?")).toBeTruthy();
  await userEvent.type(screen.getByLabelText(/Note/), "v2.1.0 at 14:00");
  await userEvent.click(screen.getByRole("button", { name: "Yes, undo it" }));
  await waitFor(() =>
    expect(sent.find((one) => one.path.endsWith("/answer"))?.body).toEqual({
      step: "change",
      attempt: 1,
      answer: "undo",
      note: "v2.1.0 at 14:00",
    }),
  );
});

it("tells who was faster, and shows how it stands", async () => {
  let run = asking;
  open("/runbooks/runs/rr1", {
    ...answers,
    "GET /api/v1/runbook-runs/rr1": () => ({ body: run }),
    "POST /api/v1/runbook-runs/rr1/answer": () => {
      run = {
        ...deciding,
        steps: deciding.steps.map((state, index) =>
          index === 0 ? { ...state, status: "skipped", by: "Bob", choice: "skip" } : state,
        ),
      };
      return {
        status: 409,
        body: { type: "/problems/wrong-state", title: "Not possible in this state", status: 409 },
      };
    },
  });
  await userEvent.click(await screen.findByTestId("answer-skip"));
  expect((await screen.findByTestId("notice")).textContent).toContain("Bob answered “Skip” first.");
  expect(screen.getByTestId("said").textContent).toContain("Step 2 of 2");
  expect(screen.getByText("Did chat change?")).toBeTruthy();
});

it("follows the run through the event stream", async () => {
  let run = pressed;
  open("/runbooks/runs/rr1", {
    ...answers,
    "GET /api/v1/runbook-runs/rr1": () => ({ body: run }),
  });
  expect((await screen.findByTestId("said")).textContent).toContain("running");
  run = deciding;
  act(() => FakeEventSource.all[0]?.say("change", { topic: "runbook-runs", id: "rr1" }));
  await waitFor(() =>
    expect(screen.getByTestId("said").textContent).toContain("a decision is needed"),
  );
});

it("stops and cancels only after asking, and says that leases stay", async () => {
  const { count } = open("/runbooks/runs/rr1", {
    ...answers,
    "POST /api/v1/runbook-runs/rr1/cancel": { body: { ...asking, status: "cancelled" } },
  });
  await userEvent.click(await screen.findByTestId("answer-stop"));
  expect(await screen.findByText(/stay in force until they end/)).toBeTruthy();
  expect(count("POST", "/api/v1/runbook-runs/rr1/answer")).toBe(0);
  await userEvent.click(screen.getByRole("button", { name: "Go on" }));

  await userEvent.click(screen.getByTestId("cancel-runbook"));
  await userEvent.click(await screen.findByTestId("confirm-cancel"));
  await waitFor(() => expect(count("POST", "/api/v1/runbook-runs/rr1/cancel")).toBe(1));
});

it("sums a finished run up", async () => {
  open("/runbooks/runs/rr1", {
    ...answers,
    "GET /api/v1/runbook-runs/rr1": {
      body: { ...deciding, status: "succeeded", current: 2, ended_at: "2026-11-30T12:25:00Z" },
    },
  });
  const summary = await screen.findByTestId("run-summary");
  expect(summary.textContent).toContain("25 min");
  expect(screen.queryByTestId("cancel-runbook")).toBeNull();
  expect(screen.queryByTestId("answers")).toBeNull();
});

it("lets a viewer read everything and press nothing", async () => {
  const { count } = open("/runbooks/runs/rr1", {
    ...answers,
    "GET /api/v1/me": { body: { ...alice, role: "viewer" } },
  });
  const button = await screen.findByTestId("answer-run");
  expect(button.getAttribute("aria-disabled")).toBe("true");
  await userEvent.click(button);
  expect(count("POST", "/api/v1/actions/trip_breaker/plan")).toBe(0);
});
