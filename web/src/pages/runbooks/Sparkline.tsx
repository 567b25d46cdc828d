import type { MetricSeries } from "../../api/types";
import { serverNow } from "../../format/clock";
import { curve, range } from "./curve";
import { seenMs } from "./queries";
import classes from "./Sparkline.module.css";
import type { Criterion } from "./types";

const size = { width: 300, height: 48 };

/** The curves of a query with the limit that they are judged by. The figures beside it say the same. */
export function Sparkline({ series, criterion }: { series: MetricSeries[]; criterion: Criterion }) {
  const end = serverNow();
  const box = { ...size, ...range(series, criterion.value), start: end - seenMs, end };
  const limit = size.height * (1 - (criterion.value - box.low) / (box.high - box.low));
  return (
    <svg
      className={classes.chart}
      viewBox={`0 0 ${size.width} ${size.height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {series.map(({ labels, points }) => (
        <path key={JSON.stringify(labels)} d={curve(points, box)} className={classes.curve} />
      ))}
      <line x1="0" x2={size.width} y1={limit} y2={limit} className={classes.limit} />
    </svg>
  );
}
