import type { ParamValues } from "../../api/queries";
import type { ActionSpec, ParamSpec } from "../../api/types";

/** Parameters as typed: text, also for numbers, because "1." is on its way to 1.5. */
export type Draft = Record<string, string>;

/** The form's first content: what was suggested, else the defaults. */
export function draftOf(spec: ActionSpec, suggested: Record<string, unknown>): Draft {
  const draft: Draft = {};
  for (const param of spec.params) {
    const value = suggested[param.name] ?? param.default;
    draft[param.name] = value === undefined || value === null ? "" : String(value);
  }
  return draft;
}

/** What is wrong with one field, or undefined. */
export function fieldError(param: ParamSpec, text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return param.required ? "Needed" : undefined;
  if (param.kind === "number" && !Number.isFinite(Number(trimmed))) return "A number, such as 2.5";
  if (param.kind === "integer" && !/^-?\d+$/.test(trimmed)) return "A whole number";
  return undefined;
}

/** The parameters to send, or undefined while a field is missing or wrong. */
export function valuesOf(spec: ActionSpec, draft: Draft): ParamValues | undefined {
  const values: ParamValues = {};
  for (const param of spec.params) {
    const text = (draft[param.name] ?? "").trim();
    if (fieldError(param, text)) return undefined;
    if (text === "") continue;
    const numeric = param.kind === "number" || param.kind === "integer";
    values[param.name] = numeric ? Number(text) : text;
  }
  return values;
}
