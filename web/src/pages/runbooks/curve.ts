import type { MetricPoint, MetricSeries } from "../../api/types";

export type Box = {
  width: number;
  height: number;
  low: number;
  high: number;
  start: number;
  end: number;
};

/** The values that a chart spans: all that were seen and the limit, with some air. */
export function range(series: MetricSeries[], limit: number): { low: number; high: number } {
  let low = Math.min(0, limit);
  let high = Math.max(0, limit);
  for (const { points } of series) {
    for (const { value } of points) {
      if (value === null || !Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  const air = (high - low || 1) * 0.1;
  return { low: low < 0 ? low - air : low, high: high + air };
}

/** The path of one series; it breaks where there is no data. */
export function curve(points: MetricPoint[], box: Box): string {
  let path = "";
  let pen = false;
  for (const { at, value } of points) {
    const time = Date.parse(at);
    if (value === null || !Number.isFinite(value) || time < box.start) {
      pen = false;
      continue;
    }
    const x = ((time - box.start) / (box.end - box.start)) * box.width;
    const y = box.height * (1 - (value - box.low) / (box.high - box.low));
    path += `${pen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  }
  return path;
}
