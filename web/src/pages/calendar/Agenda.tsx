import { IconSnowflake } from "@tabler/icons-react";
import { ChangeStatusTag } from "../../ui/tones";
import { scope } from "../changes/CalendarPanel";
import { nameOf, type Span } from "../changes/guard";
import classes from "./Agenda.module.css";
import { NoChange } from "./DayList";
import { localMinuteOf, minuteOn, utcMinute } from "./day";
import { agendaOf, type Entry } from "./entries";
import type { FreezeBar, Lane } from "./lanes";

type Props = {
  lanes: Lane[];
  freezes: FreezeBar[];
  day: Span;
  now: number;
  onSelect: (id: string) => void;
};

/** The day from top to bottom, for a narrow screen: the same facts as the lanes. */
export function Agenda({ lanes, freezes, day, now, onSelect }: Props) {
  if (lanes.length + freezes.length === 0) return <NoChange />;
  return (
    <ol className={classes.list} data-testid="agenda">
      {agendaOf(lanes, freezes, day, now).map((entry) => (
        <li key={entry.key} className={classes.entry} data-kind={entry.kind}>
          <EntryView entry={entry} day={day} onSelect={onSelect} />
        </li>
      ))}
    </ol>
  );
}

function EntryView(props: { entry: Entry; day: Span; onSelect: (id: string) => void }) {
  const { entry, day, onSelect } = props;
  if (entry.kind === "now") {
    return <span className={classes.now}>now, {localMinuteOf(new Date(entry.at))}</span>;
  }
  const [start, end] = [new Date(entry.at), new Date(entry.end)];
  const times = (
    <span className={classes.times}>
      <b>
        {minuteOn(day, entry.at)} – {entry.open ? "until lifted" : minuteOn(day, entry.end)}
      </b>
      <span>
        {utcMinute(start)}
        {entry.open ? "" : ` – ${utcMinute(end)}`} UTC
      </span>
    </span>
  );
  if (entry.kind === "freeze") {
    return (
      <div className={classes.freeze}>
        {times}
        <span className={classes.what}>
          <b>
            <IconSnowflake size={14} aria-hidden /> Frozen: {scope(entry.freeze)}
          </b>
          <span>{entry.freeze.reason}</span>
        </span>
      </div>
    );
  }
  const { change, guard } = entry;
  return (
    <button
      type="button"
      className={classes.change}
      onClick={() => onSelect(change.id)}
      aria-haspopup="dialog"
      data-testid="agenda-change"
    >
      {times}
      <span className={classes.what}>
        <b>{nameOf(change)}</b>
        <span>
          <ChangeStatusTag status={change.status} /> {change.environment || "every environment"}
          {change.requester && ` · ${change.requester}`}
        </span>
        {guard && (
          <span className={classes.muted}>
            keeps others away {minuteOn(day, guard.start)} – {minuteOn(day, guard.end)}
          </span>
        )}
      </span>
    </button>
  );
}
