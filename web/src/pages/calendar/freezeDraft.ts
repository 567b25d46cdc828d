import type { Change, Freeze } from "../../api/types";
import { plural } from "../../format/number";
import { scope } from "../changes/CalendarPanel";
import { freezeMeets } from "../changes/why";
import type { Asked } from "./ask";
import type { FreezeRequest } from "./useFreeze";

/** A freeze as it is typed; times are local, as the browser's field has them. */
export type FreezeDraft = {
  reason: string;
  services: string[];
  environments: string[];
  kinds: Asked["kind"][];
  start: string;
  end: string;
};

/** What is wrong with it, or undefined. */
export function freezeError(draft: FreezeDraft, now: number): string | undefined {
  if (draft.reason.trim() === "") return "A reason is needed.";
  if (!draft.end) return undefined;
  const end = Date.parse(draft.end);
  if (end <= now) return "This is over already.";
  return draft.start && end <= Date.parse(draft.start) ? "It ends before it begins." : undefined;
}

/** The freeze to send; empty lists, which mean all, are left out. */
export function freezeOf(draft: FreezeDraft, now: number): FreezeRequest {
  const { reason, services, environments, kinds, start, end } = draft;
  return {
    reason: reason.trim(),
    start: new Date(start || now).toISOString(),
    ...(end && { end: new Date(end).toISOString() }),
    ...(services.length > 0 && { services }),
    ...(environments.length > 0 && { environments }),
    ...(kinds.length > 0 && { kinds }),
  };
}

/** What it would deny, in words, before it is made. */
export function effectText(draft: FreezeDraft, active: Change[], now: number): string {
  const request = freezeOf({ ...draft, reason: draft.reason || "-" }, now);
  const freeze: Freeze = { ...request, id: "", created_by: "", created_at: request.start };
  const waiting = active.filter(
    (change) =>
      (change.status === "claimed" || change.status === "held") &&
      change.kind !== "rollback" &&
      change.kind !== "emergency_action" &&
      freezeMeets(freeze, change),
  );
  const denied =
    waiting.length === 0
      ? "No change that is registered now falls into it."
      : `${plural(waiting.length, "registered change")} will be denied when starting: ${waiting
          .map(({ service, environment }) => `${service} in ${environment}`)
          .join(", ")}.`;
  return `Denies forward changes of ${scope(freeze)}. What runs already may finish; rollbacks and emergency actions stay free. ${denied}`;
}
