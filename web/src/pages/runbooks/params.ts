import type { ParamSpec, Runbook, RunbookParam } from "../../api/types";
import { type Draft, fieldError } from "../actions/params";

/** A runbook's parameter as the fields of actions know it: names of the catalogue are texts. */
export function asField(param: RunbookParam): ParamSpec {
  const { kind } = param;
  return { ...param, kind: kind === "service" || kind === "environment" ? "text" : kind };
}

/** The form's first content: what was suggested, else the defaults. */
export function draftOf(runbook: Runbook, suggested: Record<string, string>): Draft {
  const draft: Draft = {};
  for (const { name, default: preset } of runbook.params) {
    draft[name] = suggested[name] ?? preset ?? "";
  }
  return draft;
}

/** The parameters to send, all of them texts, or undefined while a field is missing or wrong. */
export function valuesOf(runbook: Runbook, draft: Draft): Record<string, string> | undefined {
  const values: Record<string, string> = {};
  for (const param of runbook.params) {
    const text = (draft[param.name] ?? "").trim();
    if (fieldError(asField(param), text)) return undefined;
    if (text !== "") values[param.name] = text;
  }
  return values;
}

/** A text with "${name}" filled in; what has no value yet stays as it is. */
export function fill(text: string, values: Draft): string {
  return text.replace(
    /\$\{([a-z0-9_]+)\}/gi,
    (whole, name: string) => values[name]?.trim() || whole,
  );
}
