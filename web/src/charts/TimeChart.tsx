import "uplot/dist/uPlot.min.css";
import { useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { localClock } from "../format/time";
import { measured, type Unit } from "../format/unit";
import { readColors } from "./colors";
import { type Columns, hasData } from "./columns";
import type { Mark } from "./marks";
import { chartOptions, type Live, type Threshold } from "./options";
import classes from "./TimeChart.module.css";

const height = 150;

type Props = {
  title: string;
  unit: Unit;
  columns: Columns;
  marks: readonly Mark[];
  thresholds: readonly Threshold[];
  /** Charts with the same key move their cursors together. */
  sync: string;
  /** The chart in words. */
  summary: string;
};

/** One signal over time. A new chart is made for another theme or number of curves; data flow into it. */
export function TimeChart({ title, unit, columns, marks, thresholds, sync, summary }: Props) {
  const scheme = useComputedColorScheme();
  const { ref: frame, width } = useElementSize<HTMLDivElement>();
  const target = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const live = useRef<Live>({ marks, thresholds });
  const [hover, setHover] = useState<number>();
  const series = columns.values.length;
  // The theme is why the tokens are read again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: tokens change with the theme
  const colors = useMemo(readColors, [scheme]);
  const drawable = width > 0;

  // biome-ignore lint/correctness/useExhaustiveDependencies: size and data flow in below
  useEffect(() => {
    if (!target.current || !drawable) return;
    const options = chartOptions({
      unit,
      series,
      width,
      height,
      colors,
      sync,
      live: live.current,
      onHover: setHover,
    });
    const made = new uPlot(options, aligned(columns), target.current);
    plot.current = made;
    // A browser short of memory may drop what was drawn; it says when drawing works again.
    const redraw = () => made.redraw();
    made.ctx.canvas.addEventListener("contextrestored", redraw);
    return () => {
      made.ctx.canvas.removeEventListener("contextrestored", redraw);
      plot.current = undefined;
      made.destroy();
    };
  }, [unit, series, colors, sync, drawable]);

  useEffect(() => {
    if (width > 0) plot.current?.setSize({ width, height });
  }, [width]);

  useEffect(() => {
    Object.assign(live.current, { marks, thresholds });
    plot.current?.setData(aligned(columns));
  }, [columns, marks, thresholds]);

  const empty = !hasData(columns);
  return (
    <figure className={classes.chart} data-testid="chart">
      <figcaption className={classes.head}>
        <span className={classes.title}>{title}</span>
        <Readout columns={columns} unit={unit} hover={hover} colors={colors.curves} />
      </figcaption>
      <div
        ref={frame}
        className={classes.frame}
        role="img"
        aria-label={`${title}: ${summary}`}
        data-empty={empty || undefined}
      >
        <div ref={target} aria-hidden="true" />
        {empty && <span className={classes.none}>no data in this time</span>}
      </div>
    </figure>
  );
}

/** The values under the cursor, or the newest ones. */
function Readout(props: {
  columns: Columns;
  unit: Unit;
  hover: number | undefined;
  colors: readonly string[];
}) {
  const { columns, unit, hover, colors } = props;
  const index = hover ?? columns.times.length - 1;
  const time = columns.times[index];
  return (
    <span className={classes.readout} data-testid="readout">
      {hover !== undefined && time !== undefined && (
        <span className={classes.time}>{localClock(new Date(time * 1000))}</span>
      )}
      {columns.values.map((column, i) => (
        <span key={columns.names[i] || i} className={classes.value}>
          <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
            <rect width="10" height="10" rx="2" fill={colors[i % colors.length]} />
          </svg>
          {columns.names[i] && <span className={classes.name}>{columns.names[i]}</span>}
          {measured(valueAt(column, index, hover === undefined), unit)}
        </span>
      ))}
    </span>
  );
}

/** The value at an index; without a cursor the newest of the last few, as the newest scrape may lag. */
function valueAt(column: readonly (number | null)[], index: number, newest: boolean) {
  if (!newest) return column[index];
  return column.slice(-3).findLast((value) => value !== null);
}

function aligned({ times, values }: Columns): uPlot.AlignedData {
  return [times, ...values];
}
