import type { Change, Freeze } from "../../api/types";
import type { Span } from "../changes/guard";
import { type FreezeBar, freezeSpan, type Lane } from "./lanes";

type Timed = { key: string; at: number };
export type Entry =
  | (Timed & { kind: "now" })
  | (Timed & { kind: "freeze"; freeze: Freeze; end: number; open: boolean })
  | (Timed & {
      kind: "change";
      change: Change;
      end: number;
      open: false;
      /** When it keeps others away, in ms; undefined where it keeps nobody away. */
      guard: Span | undefined;
    });

/** Changes, freezes and the present time of a day in their order. */
export function agendaOf(lanes: Lane[], freezes: FreezeBar[], day: Span, now: number): Entry[] {
  const entries: Entry[] = [];
  for (const lane of lanes) {
    for (const { change, guarded } of lane.blocks) {
      entries.push({
        kind: "change",
        key: change.id,
        at: Date.parse(change.start),
        end: Date.parse(change.end),
        open: false,
        change,
        guard: guarded,
      });
    }
  }
  for (const { freeze } of freezes) {
    const { start, end } = freezeSpan(freeze);
    entries.push({
      kind: "freeze",
      key: freeze.id,
      at: start,
      end,
      open: !freeze.end,
      freeze,
    });
  }
  if (day.start <= now && now < day.end) entries.push({ kind: "now", key: "now", at: now });
  return entries.sort((a, b) => a.at - b.at || a.key.localeCompare(b.key));
}
