import type { MetricSeries } from "../api/types";
import type { ChartRange } from "./range";

/** Curves over one time axis, as uPlot takes them: seconds, then one column for each series. */
export type Columns = {
  readonly times: number[];
  readonly values: (number | null)[][];
  readonly names: string[];
};

// Where a signal comes in more series than this, single ones cannot be told apart.
export const mostSeries = 8;

/**
 * Puts series on the grid of a range. Each time without a sample is null, and so
 * is what is not a number: a chart with the same grid as another shares its cursor,
 * and a hole stays a hole.
 */
export function toColumns(series: readonly MetricSeries[], range: ChartRange): Columns {
  const length = Math.floor((range.end - range.start) / range.stepMs) + 1;
  const times = Array.from({ length }, (_, i) => (range.start + i * range.stepMs) / 1000);
  const shown = [...series].sort(byPeak).slice(0, mostSeries);
  const values = shown.map(({ points }) => {
    const column = new Array<number | null>(length).fill(null);
    for (const { at, value } of points) {
      const index = Math.round((Date.parse(at) - range.start) / range.stepMs);
      if (index < 0 || index >= length || value === null || !Number.isFinite(value)) continue;
      column[index] = value;
    }
    return column;
  });
  return { times, values, names: namesOf(shown) };
}

/** The series that reach highest first: those are looked for. */
function byPeak(a: MetricSeries, b: MetricSeries): number {
  const peak = ({ points }: MetricSeries) =>
    points.reduce((high, { value }) => Math.max(high, value ?? Number.NEGATIVE_INFINITY), -1e308);
  return peak(b) - peak(a);
}

/** Names by the labels that tell series apart; empty where there is but one. */
export function namesOf(series: readonly Pick<MetricSeries, "labels">[]): string[] {
  const labels = new Set(series.flatMap((one) => Object.keys(one.labels)));
  const telling = [...labels]
    .filter((label) => new Set(series.map((one) => one.labels[label] ?? "")).size > 1)
    .sort();
  return series.map((one) =>
    telling.map((label) => one.labels[label] || `no ${label}`).join(" · "),
  );
}

/** Whether there is anything to draw. */
export function hasData({ values }: Columns): boolean {
  return values.some((column) => column.some((value) => value !== null));
}

/** The first time (ms) is before, the rest after; figures are over all series of a signal. */
export type Summary = {
  /** Median of the time before; undefined without data. */
  readonly before: number | undefined;
  readonly lowest: number | undefined;
  readonly highest: number | undefined;
  /** The newest value, undefined when the curve has ended. */
  readonly last: number | undefined;
};

// How many points the newest value may be behind the end of the range.
const lateSteps = 3;

/** A chart in four figures, for a table and for those who cannot see it. */
export function summarize({ times, values }: Columns, splitMs: number): Summary {
  const before: number[] = [];
  let lowest = Number.POSITIVE_INFINITY;
  let highest = Number.NEGATIVE_INFINITY;
  times.forEach((time, index) => {
    for (const column of values) {
      const value = column[index];
      if (value === null || value === undefined) continue;
      if (time * 1000 < splitMs) before.push(value);
      lowest = Math.min(lowest, value);
      highest = Math.max(highest, value);
    }
  });
  const newest = values[0]?.slice(-lateSteps).filter((value) => value !== null);
  before.sort((a, b) => a - b);
  return {
    before: before[Math.floor(before.length / 2)],
    lowest: Number.isFinite(lowest) ? lowest : undefined,
    highest: Number.isFinite(highest) ? highest : undefined,
    last: newest?.at(-1) ?? undefined,
  };
}

/**
 * The value axis: from zero to the highest value with some air, and up to a
 * threshold that is not far above. Where all is zero or nothing it spans the thresholds.
 */
export function valueRange(
  low: number | null,
  high: number | null,
  thresholds: readonly number[],
): [number, number] {
  const top = high ?? 0;
  const near = thresholds.filter((value) => top <= 0 || value <= top * 2.5);
  const upper = Math.max(top, 0, ...near);
  const lower = Math.min(low ?? 0, 0);
  if (upper === lower) return [lower, lower + 1];
  return [lower < 0 ? lower * 1.08 : 0, upper * 1.08];
}
