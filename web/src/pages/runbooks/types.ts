import type { components } from "../../api/schema.gen";
import type { RunbookStep, RunbookStepState } from "../../api/types";

export type Criterion = components["schemas"]["Criterion"];
export type StepState = RunbookStepState;
export type Phase = RunbookStep["phase"];
