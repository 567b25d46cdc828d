import type { MetricPoint } from "../api/types";

/** One point of a curve: time in ms and value, null where there is no data. */
export type Point = { readonly at: number; readonly value: number | null };

// Two points this many steps apart have a hole between them; less is jitter.
const holeSteps = 2.5;

/**
 * The points of an answer with a null in each hole. Prometheus leaves out times
 * without a sample, and a line drawn over them would be a measurement nobody made.
 */
export function withHoles(points: readonly MetricPoint[], stepMs = stepOf(points)): Point[] {
  const out: Point[] = [];
  let before: number | undefined;
  for (const { at, value } of points) {
    const time = Date.parse(at);
    if (Number.isNaN(time)) continue;
    if (before !== undefined && stepMs > 0 && time - before > stepMs * holeSteps) {
      out.push({ at: before + stepMs, value: null });
    }
    out.push({ at: time, value: value !== null && Number.isFinite(value) ? value : null });
    before = time;
  }
  return out;
}

/** The distance in ms that most neighbours have; 0 for fewer than two points. */
export function stepOf(points: readonly MetricPoint[]): number {
  const steps: number[] = [];
  for (let i = 1; i < points.length; i++) {
    const step = Date.parse(points[i]?.at ?? "") - Date.parse(points[i - 1]?.at ?? "");
    if (step > 0) steps.push(step);
  }
  steps.sort((a, b) => a - b);
  return steps[Math.floor(steps.length / 2)] ?? 0;
}
