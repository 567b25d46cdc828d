import type { RangeAsked } from "../api/queries";

/** A time range of a chart in ms; both ends lie on a multiple of the step. */
export type ChartRange = {
  readonly start: number;
  readonly end: number;
  readonly stepMs: number;
  /** Whether its end moves on with the time. */
  readonly open: boolean;
};

const second = 1_000;
const minute = 60 * second;

/** How much is shown before an incident opened and after it was resolved. */
export const aroundMs = 15 * minute;

// Steps that divide minutes or hours, so that points fall on round times.
const steps = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600].map((s) => s * second);

// Closer points than this cannot be told apart on the screen.
const pixelsPerPoint = 2;

/**
 * What the charts of an incident show: from 15 minutes before it opened until now,
 * or until 15 minutes after it was resolved. Ends are rounded to the step, so that
 * the range stays the same between two points.
 */
export function incidentRange(
  opened: number,
  resolved: number | undefined,
  now: number,
  width: number,
): ChartRange {
  const from = opened - aroundMs;
  const last = resolved === undefined ? Number.POSITIVE_INFINITY : resolved + aroundMs;
  const until = Math.min(now, last);
  const stepMs = stepFor(until - from, width);
  const start = Math.floor(from / stepMs) * stepMs;
  const end = Math.max(start + stepMs, Math.floor(until / stepMs) * stepMs);
  return { start, end, stepMs, open: now < last };
}

/** The shortest step that gives no more points than a width in CSS pixels can show. */
export function stepFor(spanMs: number, width: number): number {
  const most = Math.max(30, width / pixelsPerPoint);
  const step = steps.find((one) => spanMs / one <= most);
  const hour = 60 * minute;
  return step ?? Math.ceil(spanMs / most / hour) * hour;
}

/** A range as its query asks for it. */
export function askFor({ start, end, stepMs, open }: ChartRange): Omit<RangeAsked, "query"> {
  const asked = { start: new Date(start).toISOString(), stepMs };
  return open ? asked : { ...asked, end: new Date(end).toISOString() };
}
