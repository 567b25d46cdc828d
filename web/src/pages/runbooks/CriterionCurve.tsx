import type { MetricSeries } from "../../api/types";
import { withHoles } from "../../charts/points";
import { extremes, spark } from "../../charts/sparkline";
import { serverNow } from "../../format/clock";
import classes from "./CriterionCurve.module.css";
import { seenMs } from "./queries";
import type { Criterion } from "./types";

const box = { width: 300, height: 48 };

/** The curves of a query with the limit that they are judged by. The figures beside it say the same. */
export function CriterionCurve(props: { series: MetricSeries[]; criterion: Criterion }) {
  const { series, criterion } = props;
  const to = serverNow();
  const span = { from: to - seenMs, to };
  const curves = series.map(({ labels, points }) => ({
    name: JSON.stringify(labels),
    points: withHoles(points).filter(({ at }) => at >= span.from),
  }));
  // One axis for all of them and the limit.
  const include = curves.flatMap(({ points }) => {
    const seen = extremes(points);
    return seen ? [seen.low, seen.high] : [];
  });
  include.push(criterion.value);
  const limit = spark([], span, box, { include }).y(criterion.value);
  return (
    <svg
      className={classes.chart}
      viewBox={`0 0 ${box.width} ${box.height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {curves.map(({ name, points }) => (
        <path key={name} d={spark(points, span, box, { include }).line} className={classes.curve} />
      ))}
      <line x1="0" x2={box.width} y1={limit} y2={limit} className={classes.limit} />
    </svg>
  );
}
