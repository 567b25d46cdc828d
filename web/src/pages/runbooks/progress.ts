import type { RunbookRun, RunbookStep } from "../../api/types";
import type { Phase, StepState } from "./types";

/** The fixed order of an incident. */
export const phases: readonly Phase[] = ["isolate", "locate", "restore"];

export const phaseTexts: Record<Phase, { name: string; text: string }> = {
  isolate: { name: "Isolate", text: "Stop the bleeding." },
  locate: { name: "Locate", text: "Find the cause." },
  restore: { name: "Restore", text: "Bring everything back." },
};

export type NumberedStep = { number: number; state: StepState };
export type PhaseState = "done" | "now" | "to come" | "ended" | "not reached";
export type PhaseView = {
  phase: Phase;
  steps: NumberedStep[];
  /** Steps that are over, however they ended. */
  over: number;
  state: PhaseState;
};

export function isLiveRun(run: Pick<RunbookRun, "status">): boolean {
  return run.status === "running" || run.status === "waiting";
}

/** Whether a step has ended; one that failed and asks what to do has not. */
export function isOver({ status, answers }: StepState): boolean {
  if (answers.length > 0) return false;
  return status !== "pending" && status !== "asking" && status !== "running";
}

/** The steps by phase, numbered through from 1; a phase without steps is left out. */
export function byPhase(run: RunbookRun): PhaseView[] {
  const numbered = run.steps.map((state, index) => ({ number: index + 1, state }));
  return phases
    .map((phase) => {
      const steps = numbered.filter(({ state }) => state.step.phase === phase);
      const over = steps.filter(({ state }) => isOver(state)).length;
      const current = steps.some(({ number }) => number - 1 === run.current);
      const live = isLiveRun(run);
      const later: PhaseState = live ? "to come" : over > 0 ? "ended" : "not reached";
      const state: PhaseState = current && live ? "now" : over === steps.length ? "done" : later;
      return { phase, steps, over, state };
    })
    .filter(({ steps }) => steps.length > 0);
}

/** The step in progress; undefined when the run is over. */
export function currentStep(run: RunbookRun): StepState | undefined {
  return isLiveRun(run) ? run.steps[run.current] : undefined;
}

/**
 * The action whose effect a decision may rest on: the nearest one before it in its
 * phase that was tried and has a criterion. `before` is the decision's index.
 */
export function evidenceOf(run: RunbookRun, before: number): StepState | undefined {
  const phase = run.steps[before]?.step.phase;
  return run.steps
    .slice(0, before)
    .findLast(({ step, status }) => step.phase === phase && step.criterion && status !== "skipped");
}

/** How long a step took, or has taken until now (ms); undefined before it began. */
export function tookMs(state: StepState, now: number): number | undefined {
  if (!state.started_at) return undefined;
  const end = state.ended_at ? Date.parse(state.ended_at) : now;
  return Math.max(0, end - Date.parse(state.started_at));
}

/** What a screen reader is told when the run moves on. */
export function sayStep(run: RunbookRun): string {
  const state = currentStep(run);
  if (!state) return `The run has ${endWords[run.status] ?? run.status}.`;
  const place = `Step ${run.current + 1} of ${run.steps.length}, ${state.step.title}`;
  if (state.status === "asking") {
    return `${place}: ${state.step.kind === "decision" ? "a decision is needed" : "it asks what to do"}.`;
  }
  return `${place}: ${state.status}${state.answers.length > 0 ? ", it asks what to do" : ""}.`;
}

const endWords: Partial<Record<RunbookRun["status"], string>> = {
  succeeded: "succeeded",
  failed: "failed",
  cancelled: "been cancelled",
};

/** "5 passed, 1 skipped": how the steps of a run ended. */
export function tally(run: RunbookRun): string {
  const counts = new Map<string, number>();
  for (const { status } of run.steps) counts.set(status, (counts.get(status) ?? 0) + 1);
  const shown = ["passed", "failed", "inconclusive", "skipped", "asking", "running", "pending"];
  return shown
    .filter((status) => counts.has(status))
    .map((status) => `${counts.get(status)} ${status === "pending" ? "not reached" : status}`)
    .join(", ");
}

/** The time from the first start to the last end of a phase's steps (ms); undefined when none began. */
export function phaseMs(steps: NumberedStep[], now: number): number | undefined {
  const begun = steps.filter(({ state }) => state.started_at);
  if (begun.length === 0) return undefined;
  const starts = begun.map(({ state }) => Date.parse(state.started_at ?? ""));
  const ends = begun.map(({ state }) => (state.ended_at ? Date.parse(state.ended_at) : now));
  return Math.max(0, Math.max(...ends) - Math.min(...starts));
}

/** The steps of a runbook by phase, numbered through from 1. */
export function byPhaseOf(steps: RunbookStep[]) {
  const numbered = steps.map((step, index) => ({ number: index + 1, step }));
  return phases
    .map((phase) => ({ phase, steps: numbered.filter(({ step }) => step.phase === phase) }))
    .filter((group) => group.steps.length > 0);
}
