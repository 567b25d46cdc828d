import type { Change } from "../../api/types";
import { groupChanges } from "../changes/order";

export type Group = { title: string; items: Change[] };

/** The groups of a list that have something in them; what is over comes last, newest first. */
export function groupsOf(changes: Change[], now: number): Group[] {
  const { held, now: current, upcoming } = groupChanges(changes, now);
  const live = new Set([...held, ...current, ...upcoming].map(({ id }) => id));
  const over = changes
    .filter(({ id }) => !live.has(id))
    .sort((a, b) => Date.parse(b.start) - Date.parse(a.start));
  return [
    { title: "Waiting for a decision", items: held },
    { title: "Now", items: current },
    { title: "Upcoming", items: upcoming },
    { title: "Over", items: over },
  ].filter(({ items }) => items.length > 0);
}
