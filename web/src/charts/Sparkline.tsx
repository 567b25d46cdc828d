import { span as length } from "../format/duration";
import { measured, type Unit } from "../format/unit";
import type { Point } from "./points";
import classes from "./Sparkline.module.css";
import { extremes, type Span, spark } from "./sparkline";

const box = { width: 120, height: 32 };

type Props = {
  name: string;
  unit: Unit;
  points: readonly Point[];
  /** The time from left to right edge. */
  span: Span | undefined;
  /** Drawn as dashed lines where they lie within the curve's range. */
  thresholds?: readonly { value: number; tone: "warning" | "critical" }[];
};

/** A small curve without axes. Its words say what it shows to those who cannot see it. */
export function Sparkline({ name, unit, points, span, thresholds = [] }: Props) {
  const range = extremes(points);
  if (!span || !range) {
    return <span className={classes.none} role="img" aria-label={`${name}, no curve: no data`} />;
  }
  const drawn = spark(points, span, box);
  const said = `${name}, last ${length(span.to - span.from)}: ${measured(range.low, unit)} to ${measured(range.high, unit)}, now ${measured(points.at(-1)?.value, unit)}`;
  return (
    <svg
      className={classes.root}
      viewBox={`0 0 ${box.width} ${box.height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={said}
      data-testid="sparkline"
    >
      {thresholds
        .filter(({ value }) => value <= range.high && value >= Math.min(0, range.low))
        .map(({ value, tone }) => (
          <line
            key={`${tone} ${value}`}
            x2={box.width}
            y1={drawn.y(value)}
            y2={drawn.y(value)}
            className={classes.threshold}
            data-tone={tone}
          />
        ))}
      <path d={drawn.line} className={classes.line} />
      {drawn.dots.map(({ x, y }) => (
        // A line of no length with round ends is a dot that the stretched box cannot flatten.
        <path key={x} d={`M${x} ${y}h0.01`} className={classes.dot} />
      ))}
    </svg>
  );
}
