import { VisuallyHidden } from "@mantine/core";
import { IconSnowflake } from "@tabler/icons-react";
import { type KeyboardEvent, useRef } from "react";
import type { Change } from "../../api/types";
import { ChangeStatusTag, words } from "../../ui/tones";
import { scope } from "../changes/CalendarPanel";
import { nameOf, type Span } from "../changes/guard";
import { NoChange } from "./DayList";
import classes from "./DayView.module.css";
import { localMinuteOf, minuteOn, ticksOf, utcMinute } from "./day";
import { type Block, type FreezeBar, type Lane, share } from "./lanes";
import { toneOf } from "./toneOf";

type Props = {
  lanes: Lane[];
  freezes: FreezeBar[];
  day: Span;
  now: number;
  selected: string | undefined;
  onSelect: (id: string) => void;
};

/**
 * A day from left to right, one lane per service. Drawn by hand: a timeline
 * library weighs more than the rest of the console and is no easier to reach by
 * keyboard.
 */
export function DayView({ lanes, freezes, day, now, selected, onSelect }: Props) {
  const root = useRef<HTMLDivElement>(null);
  if (lanes.length + freezes.length === 0) return <NoChange />;
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: arrow keys only move the focus between the buttons in it */}
      <div
        className={classes.view}
        ref={root}
        onKeyDown={(event) => moveFocus(event, root.current)}
      >
        <Axis day={day} now={now} />
        <div className={classes.lanes}>
          <Grid day={day} now={now} />
          {freezes.length > 0 && <FreezeLane freezes={freezes} />}
          {lanes.map((lane) => (
            <LaneView
              key={lane.key}
              lane={lane}
              day={day}
              selected={selected}
              onSelect={onSelect}
            />
          ))}
        </div>
      </div>
      <Legend />
    </>
  );
}

function Axis({ day, now }: { day: Span; now: number }) {
  return (
    <div className={classes.axis} aria-hidden="true">
      <span className={classes.corner}>
        <b>local</b>
        <span>UTC</span>
      </span>
      <div className={classes.ticks}>
        {ticksOf(day, 2).map(({ at, local, utc }) => (
          <span
            key={at}
            className={classes.tick}
            style={{ left: percent(share({ start: at, end: at }, day).start) }}
          >
            <b>{local}</b>
            <span>{utc}</span>
          </span>
        ))}
        {day.start <= now && now < day.end && (
          <span
            className={classes.nowLabel}
            style={{ left: percent(share({ start: now, end: now }, day).start) }}
          >
            now {localMinuteOf(new Date(now))}
          </span>
        )}
      </div>
    </div>
  );
}

/** Lines of the hours and of now, behind the lanes. */
function Grid({ day, now }: { day: Span; now: number }) {
  return (
    <div className={classes.grid} aria-hidden="true">
      {ticksOf(day, 1).map(({ at }) => (
        <span
          key={at}
          className={classes.hour}
          style={{ left: percent(share({ start: at, end: at }, day).start) }}
        />
      ))}
      {day.start <= now && now < day.end && (
        <span
          className={classes.now}
          style={{ left: percent(share({ start: now, end: now }, day).start) }}
        />
      )}
    </div>
  );
}

/** The freezes of the day by name; each lane that one covers is hatched below it. */
function FreezeLane({ freezes }: { freezes: FreezeBar[] }) {
  return (
    <section className={classes.lane} aria-label="Freezes">
      <div className={classes.name} aria-hidden="true">
        <b>Freezes</b>
      </div>
      <ul className={classes.bars}>
        {freezes.map(({ freeze, span }) => (
          <li
            key={freeze.id}
            className={classes.bar}
            style={{ marginLeft: percent(span.start), width: percent(span.end - span.start) }}
            title={`${scope(freeze)}: ${freeze.reason} (${freeze.created_by})`}
          >
            <IconSnowflake size={14} aria-hidden /> Frozen: {scope(freeze)}: {freeze.reason}
          </li>
        ))}
      </ul>
    </section>
  );
}

function LaneView(props: {
  lane: Lane;
  day: Span;
  selected: string | undefined;
  onSelect: (id: string) => void;
}) {
  const { lane, day, selected, onSelect } = props;
  const name = `${lane.service || "everything"} in ${lane.environment || "every environment"}`;
  return (
    <section className={classes.lane} aria-label={name} data-testid="lane">
      <div className={classes.name} aria-hidden="true">
        <b>{lane.service || "everything"}</b>
        <span>{lane.environment || "every environment"}</span>
      </div>
      <div className={classes.track} style={{ height: `calc(${lane.rows} * var(--row))` }}>
        {lane.freezes.map(({ freeze, span }) => (
          <span
            key={freeze.id}
            className={classes.freeze}
            style={{ left: percent(span.start), width: percent(span.end - span.start) }}
          />
        ))}
        {lane.blocks.map((block) => (
          <BlockButton
            key={block.change.id}
            block={block}
            lane={lane.key}
            day={day}
            selected={block.change.id === selected}
            onSelect={onSelect}
          />
        ))}
      </div>
    </section>
  );
}

function BlockButton(props: {
  block: Block;
  lane: string;
  day: Span;
  selected: boolean;
  onSelect: (id: string) => void;
}) {
  const { block, lane, day, selected, onSelect } = props;
  const { change, room, guarded, window } = block;
  const shown = window.end > 0 && window.start < 1;
  const inside = (span: Span) => {
    const place = share(span, room);
    return { left: percent(place.start), width: percent(place.end - place.start) };
  };
  return (
    <button
      type="button"
      className={classes.block}
      style={{
        left: percent(room.start),
        width: percent(room.end - room.start),
        top: `calc(${block.row} * var(--row))`,
      }}
      onClick={() => onSelect(change.id)}
      aria-haspopup="dialog"
      aria-expanded={selected}
      title={`${nameOf(change)}: ${spoken(change, day)}`}
      data-lane={lane}
      data-at={block.window.start}
      data-status={change.status}
      data-tone={toneOf(change.status)}
      data-testid="block"
    >
      <span
        className={classes.text}
        data-side={block.text}
        style={
          block.text === "right"
            ? { left: inside(window).left }
            : { right: percent(1 - share(window, room).end) }
        }
      >
        {!shown && (
          <span className={classes.elsewhere}>{minuteOn(day, Date.parse(change.start))}</span>
        )}
        <b>{words(change.kind)}</b>
        <ChangeStatusTag status={change.status} />
        <span className={classes.who}>{change.requester}</span>
      </span>
      <VisuallyHidden>{spoken(change, day)}</VisuallyHidden>
      {guarded && <span className={classes.guard} style={inside(block.guard)} />}
      {shown && <span className={classes.window} style={inside(window)} />}
    </button>
  );
}

/** What the place on the axis says, for those who hear it, and the times in UTC. */
function spoken(change: Change, day: Span): string {
  const [start, end] = [Date.parse(change.start), Date.parse(change.end)];
  const here = `${minuteOn(day, start)} to ${minuteOn(day, end)}`;
  const utc = `${utcMinute(new Date(start))} to ${utcMinute(new Date(end))} UTC`;
  return `${change.service} in ${change.environment}, ${here} local, ${utc}`;
}

function Legend() {
  return (
    <ul className={classes.legend} aria-label="Legend">
      <li>
        <span className={classes.window} data-legend="window" /> window
      </li>
      <li>
        <span className={classes.guard} data-legend="guard" /> guard band: others need a decision
      </li>
      <li>
        <span className={classes.window} data-legend="held" /> held, keeps nobody away
      </li>
      <li>
        <span className={classes.freeze} data-legend="freeze" /> freeze
      </li>
    </ul>
  );
}

/** Left and right walk through a lane, up and down to the nearest block of another lane. */
function moveFocus(event: KeyboardEvent, root: HTMLElement | null): void {
  const from = event.target instanceof HTMLElement ? event.target.closest("button") : null;
  if (!root || !from?.dataset.lane) return;
  const blocks = [...root.querySelectorAll<HTMLButtonElement>("button[data-lane]")];
  const to = neighbour(
    blocks.map(({ dataset }) => ({ lane: dataset.lane ?? "", at: Number(dataset.at) })),
    blocks.indexOf(from),
    event.key,
  );
  if (to === undefined) return;
  event.preventDefault();
  blocks[to]?.focus();
}

/** The index that an arrow key leads to; undefined when it leads nowhere. */
export function neighbour(
  blocks: { lane: string; at: number }[],
  from: number,
  key: string,
): number | undefined {
  const own = blocks[from];
  if (!own) return undefined;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const to = from + (key === "ArrowRight" ? 1 : -1);
    return blocks[to]?.lane === own.lane ? to : undefined;
  }
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const lanes = [...new Set(blocks.map(({ lane }) => lane))];
  const lane = lanes[lanes.indexOf(own.lane) + (key === "ArrowDown" ? 1 : -1)];
  if (lane === undefined) return undefined;
  let best: number | undefined;
  blocks.forEach((block, index) => {
    const better = (other: { at: number } | undefined) =>
      !other || Math.abs(block.at - own.at) < Math.abs(other.at - own.at);
    if (block.lane === lane && better(best === undefined ? undefined : blocks[best])) best = index;
  });
  return best;
}

function percent(part: number): string {
  return `${(part * 100).toFixed(3)}%`;
}
