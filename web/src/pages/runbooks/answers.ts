import type { RunbookRun } from "../../api/types";
import type { StepState } from "./types";

/** One button of a step that asks. */
export type Answer = {
  answer: string;
  label: string;
  /** What follows, for those who hesitate. */
  hint: string;
  look: "main" | "plain" | "danger";
  /** Whether a plan is shown before it is sent: only what runs an action has one. */
  plan: boolean;
  /** Whether it is asked once more, because it ends the run. */
  sure: boolean;
};

const order = ["run", "choice", "retry", "skip", "stop"];

/** The buttons of a step, in a fixed order, from what the server says may be answered. */
export function answersOf(state: StepState, steps: StepState[] = []): Answer[] {
  const rank = (answer: string) => {
    const at = order.indexOf(answer);
    return at < 0 || isChoice(state, answer) ? 1 : at;
  };
  return state.answers
    .map((answer, index) => ({ answer, index }))
    .sort((a, b) => rank(a.answer) - rank(b.answer) || a.index - b.index)
    .map(({ answer }) => toAnswer(state, answer, steps));
}

function toAnswer(state: StepState, answer: string, steps: StepState[]): Answer {
  const { step } = state;
  const choice = step.kind === "decision" && step.choices?.find(({ id }) => id === answer);
  if (choice) {
    return {
      answer,
      label: choice.label,
      hint: afterwards(choice.goto, steps),
      look: "main",
      plan: false,
      sure: false,
    };
  }
  const isAction = step.kind === "action";
  switch (answer) {
    case "run":
      return {
        answer,
        label: isAction ? "Run…" : "Run",
        hint: isAction ? "Shows the plan first." : "",
        look: "main",
        plan: isAction,
        sure: false,
      };
    case "retry":
      return {
        answer,
        label: isAction ? "Try again…" : "Try again",
        hint: isAction ? "Shows the plan first." : "Starts the step anew.",
        look: "main",
        plan: isAction,
        sure: false,
      };
    case "skip":
      return {
        answer,
        label: "Skip",
        hint: "Goes on with the next step.",
        look: "plain",
        plan: false,
        sure: false,
      };
    case "stop":
      return {
        answer,
        label: "Stop the run…",
        hint: "Ends the run as failed.",
        look: "danger",
        plan: false,
        sure: true,
      };
    default:
      return { answer, label: answer, hint: "", look: "plain", plan: false, sure: false };
  }
}

function isChoice({ step }: StepState, answer: string): boolean {
  return step.kind === "decision" && (step.choices ?? []).some(({ id }) => id === answer);
}

function afterwards(goto: string | undefined, steps: StepState[]): string {
  if (!goto) return "Goes on with the next step.";
  if (goto === "end") return "Ends the run well.";
  const step = steps.find(({ step: { id } }) => id === goto)?.step;
  return `Goes on with “${step?.title ?? goto}”.`;
}

/** What was answered, in the words of its button: "retry" is "Try again". */
export function answerLabel(state: StepState, answer: string): string {
  return toAnswer(state, answer, []).label.replace("…", "");
}

/** Who answered a step that this page still showed as asking; undefined when it still asks for the same. */
export function answeredMeanwhile(
  run: RunbookRun,
  step: string,
  attempt: number,
): string | undefined {
  const state = run.steps.find((one) => one.step.id === step);
  if (!state) return undefined;
  if (state.answers.length > 0 && state.attempt === attempt) return undefined;
  const who = state.by || "Somebody";
  if (state.choice) return `${who} answered “${answerLabel(state, state.choice)}” first.`;
  if (run.status === "cancelled") return `${run.ended_by ?? "Somebody"} cancelled the run first.`;
  return `${who} answered first; the step is ${state.status} now.`;
}
