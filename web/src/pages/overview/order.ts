import type { RunbookRun } from "../../api/types";

/** Runs that wait for a person first, then the newest. */
export function askingFirst(runs: readonly RunbookRun[]): RunbookRun[] {
  const rank = ({ status }: RunbookRun) => (status === "waiting" ? 0 : 1);
  return [...runs].sort(
    (a, b) => rank(a) - rank(b) || Date.parse(b.started_at) - Date.parse(a.started_at),
  );
}
