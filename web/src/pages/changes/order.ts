import type { Change } from "../../api/types";

export type Grouped = { held: Change[]; now: Change[]; upcoming: Change[] };

/** Changes by what they ask of the reader: decide, know, expect. Each group is ordered by time. */
export function groupChanges(changes: Change[], now: number): Grouped {
  const groups: Grouped = { held: [], now: [], upcoming: [] };
  for (const change of changes) {
    if (change.status === "held") groups.held.push(change);
    else if (isNow(change, now)) groups.now.push(change);
    else if (change.status === "claimed") groups.upcoming.push(change);
  }
  groups.held.sort(by((change) => change.confirm_by ?? change.start));
  groups.now.sort(by((change) => change.start));
  groups.upcoming.sort(by((change) => change.start));
  return groups;
}

/** Changes that start before a time (ms), and those that start later. */
export function splitAt(changes: readonly Change[], time: number): [Change[], Change[]] {
  const before = (change: Change) => Date.parse(change.start) < time;
  return [changes.filter(before), changes.filter((change) => !before(change))];
}

function isNow(change: Change, now: number): boolean {
  if (change.status === "running" || change.status === "overrun") return true;
  return (
    change.status === "claimed" && Date.parse(change.start) <= now && now < Date.parse(change.end)
  );
}

function by(time: (change: Change) => string): (a: Change, b: Change) => number {
  return (a, b) => Date.parse(time(a)) - Date.parse(time(b));
}
