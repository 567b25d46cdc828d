import type { Mark, MarkKind } from "../../charts/marks";
import { localTime, utcTime } from "../../format/time";
import classes from "./SignalCharts.module.css";

const kinds: Record<MarkKind, string> = {
  alert: "Alert",
  resolved: "Alert",
  change: "Change",
  action: "Action",
};

/** What the lines and bands of the charts are, in the order of time. */
export function MarkList({ marks }: { marks: readonly Mark[] }) {
  if (marks.length === 0) return null;
  return (
    <ul className={classes.marks} aria-label="Marks in the charts" data-testid="marks">
      {marks.map((mark) => (
        <li key={mark.id} className={classes.mark} data-kind={mark.kind}>
          <span className={classes.sign} aria-hidden="true" />
          <When mark={mark} />
          <span className={classes.what}>
            <b>{kinds[mark.kind]}</b> {mark.text}
          </span>
        </li>
      ))}
    </ul>
  );
}

function When({ mark }: { mark: Mark }) {
  const from = new Date(mark.from);
  const to = new Date(mark.to);
  const now = new Date();
  const moment = mark.to - mark.from < 1_000 && !mark.open;
  return (
    <span
      className={classes.when}
      title={moment ? utcTime(from) : `${utcTime(from)} to ${mark.open ? "now" : utcTime(to)}`}
    >
      {localTime(from, now)}
      {!moment && ` – ${mark.open ? "now" : localTime(to, now)}`}
    </span>
  );
}
