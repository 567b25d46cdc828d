import type { MetricSeries } from "../../api/types";
import { noData, percent, rate } from "../../format/number";
import type { Criterion } from "./types";

export type Verdict = "pass" | "fail" | "no_data";
export type Judgement = { verdict: Verdict; value: number | null };

const holds: Record<Criterion["is"], (value: number, limit: number) => boolean> = {
  "<": (value, limit) => value < limit,
  "<=": (value, limit) => value <= limit,
  ">": (value, limit) => value > limit,
  ">=": (value, limit) => value >= limit,
};

/**
 * Judges values as the server does: every series must hold; a value that fails
 * outweighs missing data, and otherwise one series without data is no data.
 */
export function judge(criterion: Criterion, values: (number | null)[]): Judgement {
  const seen = values.filter((value) => value !== null && Number.isFinite(value)) as number[];
  if (seen.length === 0) return { verdict: "no_data", value: null };
  const high = criterion.is === "<" || criterion.is === "<=";
  const value = high ? Math.max(...seen) : Math.min(...seen);
  if (!holds[criterion.is](value, criterion.value)) return { verdict: "fail", value };
  return { verdict: seen.length < values.length ? "no_data" : "pass", value };
}

/** The newest point of each series; null where the series ended more than `oldMs` ago. */
export function newest(series: MetricSeries[], now: number, oldMs = 60_000): (number | null)[] {
  return series.map(({ points }) => {
    const last = points.at(-1);
    return last && now - Date.parse(last.at) <= oldMs ? last.value : null;
  });
}

/** A value in the criterion's unit: "4.2 %" of a ratio, "1.2 s", "12 requests"; "no data" of null. */
export function measure(value: number | null | undefined, unit: string | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return noData;
  if (unit === "ratio") return percent(value);
  const size = Math.abs(value);
  const number = size > 0 && size < 10 ? String(Number(value.toPrecision(2))) : rate(value);
  return unit ? `${number} ${unit}` : number;
}

const words: Record<Criterion["is"], string> = {
  "<": "below",
  "<=": "at most",
  ">": "above",
  ">=": "at least",
};

/** "must be below 5 %". */
export function demand(criterion: Criterion): string {
  return `must be ${words[criterion.is]} ${measure(criterion.value, criterion.unit)}`;
}
