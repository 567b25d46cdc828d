import type uPlot from "uplot";
import { axisLabels, type Unit } from "../format/unit";
import type { ChartColors } from "./colors";
import { valueRange } from "./columns";
import { drawMarks } from "./draw";
import type { Mark } from "./marks";

export type Threshold = { readonly value: number; readonly tone: "warning" | "critical" };

/** What a chart reads at each drawing; it changes without a new chart. */
export type Live = { marks: readonly Mark[]; thresholds: readonly Threshold[] };

type Wanted = {
  unit: Unit;
  series: number;
  width: number;
  height: number;
  colors: ChartColors;
  /** Charts with the same key move their cursors together. */
  sync: string;
  live: Live;
  onHover: (index: number | undefined) => void;
};

const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
const font = "11px system-ui, sans-serif";

/** The whole look of a chart. */
export function chartOptions(wanted: Wanted): uPlot.Options {
  const { colors, unit, live } = wanted;
  const axis = {
    stroke: colors.text,
    font,
    grid: { stroke: colors.line, width: 1 },
    ticks: { show: false },
  };
  return {
    width: wanted.width,
    height: wanted.height,
    padding: [10, 18, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      // A drag would zoom one chart of several that share their time.
      drag: { x: false, y: false },
      sync: { key: wanted.sync, setSeries: false },
      points: { size: 7 },
    },
    scales: {
      x: { time: true },
      y: {
        range: (_plot, low, high) =>
          valueRange(
            low,
            high,
            live.thresholds.map(({ value }) => value),
          ),
      },
    },
    axes: [
      {
        ...axis,
        size: 24,
        gap: 4,
        space: 70,
        values: (_plot, times) => times.map((time) => clock.format(time * 1000)),
      },
      {
        ...axis,
        size: 52,
        gap: 4,
        space: 34,
        values: (_plot, values) => axisLabels(values, unit),
      },
    ],
    series: [
      {},
      ...Array.from({ length: wanted.series }, (_, index): uPlot.Series => {
        const color = colors.curves[index % colors.curves.length] ?? colors.text;
        return {
          stroke: color,
          width: 1.75,
          spanGaps: false,
          ...(index >= colors.curves.length && { dash: [5, 3] }),
          points: { show: false },
        };
      }),
    ],
    hooks: {
      // Before the curves, so that they stay on top.
      drawClear: [(plot) => drawMarks(plot, live, colors)],
      setCursor: [(plot) => wanted.onHover(plot.cursor.idx ?? undefined)],
    },
  };
}
