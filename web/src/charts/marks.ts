import type { ActionRun, Alert, Change, IncidentDetail } from "../api/types";
import type { ChartRange } from "./range";

export type MarkKind = "alert" | "resolved" | "change" | "action";

/** Something that happened, drawn into each chart: a line, or a band from begin to end. */
export type Mark = {
  readonly id: string;
  readonly kind: MarkKind;
  /** ms. */
  readonly from: number;
  /** ms; the same as from for a moment. Open bands reach to the end of the range. */
  readonly to: number;
  /** Whether it goes on. */
  readonly open: boolean;
  readonly text: string;
};

/** All marks of an incident that touch the range, in the order of time. */
export function marksOf(
  detail: Pick<IncidentDetail, "alerts" | "runs">,
  changes: readonly Change[],
  range: ChartRange,
): Mark[] {
  const runs = new Set(detail.runs.map(({ id }) => id));
  const marks = [
    ...alertMarks(detail.alerts, range.stepMs),
    ...detail.runs.flatMap((run) => runMark(run, range.end)),
    // A run of this incident is a change too; one band for it is enough.
    ...changes
      .filter(({ action_run }) => !action_run || !runs.has(action_run))
      .flatMap((change) => changeMark(change, range.end)),
  ];
  return marks
    .filter(({ from, to }) => to >= range.start && from <= range.end)
    .sort((a, b) => a.from - b.from || a.id.localeCompare(b.id));
}

/** Alerts that began or ended together are one line: a storm would be a wall. */
function alertMarks(alerts: readonly Alert[], stepMs: number): Mark[] {
  const groups = new Map<string, { kind: MarkKind; at: number; names: Set<string> }>();
  const put = (kind: MarkKind, time: string | undefined, name: string) => {
    const at = Date.parse(time ?? "");
    if (Number.isNaN(at)) return;
    const key = `${kind} ${Math.round(at / stepMs)}`;
    const group = groups.get(key) ?? { kind, at, names: new Set<string>() };
    group.at = Math.min(group.at, at);
    group.names.add(name);
    groups.set(key, group);
  };
  for (const alert of alerts) {
    const name = alert.labels.alertname ?? alert.fingerprint;
    put("alert", alert.starts_at, name);
    if (alert.status === "resolved") put("resolved", alert.ends_at, name);
  }
  return [...groups].map(([id, { kind, at, names }]) => ({
    id,
    kind,
    from: at,
    to: at,
    open: false,
    text: `${[...names].join(", ")} ${kind === "alert" ? "fires" : "ends"}`,
  }));
}

/** An action is a band from the moment when every gateway enforced it. */
function runMark(run: ActionRun, end: number): Mark[] {
  if (!run.enforced_at) return [];
  return [
    {
      id: `run ${run.id}`,
      kind: "action",
      from: Date.parse(run.enforced_at),
      to: run.ended_at ? Date.parse(run.ended_at) : end,
      open: !run.ended_at,
      text: run.summary || run.title,
    },
  ];
}

const happened: ReadonlySet<Change["status"]> = new Set([
  "running",
  "succeeded",
  "failed",
  "rolled_back",
  "overrun",
]);

function changeMark(change: Change, end: number): Mark[] {
  if (!happened.has(change.status)) return [];
  const open = change.status === "running" || change.status === "overrun";
  const done = Date.parse(change.finished_at ?? change.end);
  return [
    {
      id: `change ${change.id}`,
      kind: "change",
      from: Date.parse(change.start),
      to: open ? Math.max(end, Date.parse(change.start)) : done,
      open,
      text: `${change.kind.replaceAll("_", " ")} of ${change.service}${change.summary ? `: ${change.summary}` : ""}`,
    },
  ];
}

/** A service with everything that it depends on or that depends on it, one hop. */
export function neighbourhood(
  services: readonly { name: string; depends_on?: string[] }[],
  service: string,
): Set<string> {
  const near = new Set([service]);
  for (const { name, depends_on = [] } of services) {
    if (name === service) for (const one of depends_on) near.add(one);
    if (depends_on.includes(service)) near.add(name);
  }
  return near;
}
