import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import type { Change } from "../../api/types";
import { localMinute, utcTime } from "../../format/time";
import { Countdown } from "../../ui/Countdown";
import { Tag } from "../../ui/Tag";
import { ChangeStatusTag, words } from "../../ui/tones";
import classes from "./ChangeRow.module.css";
import { DecideButtons } from "./DecideButtons";

/** One line of the calendar; a held one can be decided here. */
export function ChangeRow({ change, highlighted }: { change: Change; highlighted?: boolean }) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (highlighted) row.current?.scrollIntoView?.({ block: "nearest" });
  }, [highlighted]);
  return (
    <li
      ref={row}
      className={classes.row}
      data-highlighted={highlighted || undefined}
      aria-current={highlighted ? "true" : undefined}
      data-testid="change"
    >
      <div className={classes.head}>
        <Link to="/changes/$id" params={{ id: change.id }} className={classes.name}>
          {change.service} · {change.environment || "every environment"}
        </Link>
        <Tag tone="neutral">{words(change.kind)}</Tag>
        <ChangeStatusTag status={change.status} />
      </div>
      {change.summary && (
        <Text size="sm" className={classes.summary}>
          {change.summary}
        </Text>
      )}
      <Text size="xs" c="var(--hf-muted)">
        <Window change={change} />
        {change.requester && ` · ${change.requester}`}
      </Text>
      {change.status === "held" && (
        <div className={classes.decide}>
          {change.confirm_by && (
            <span className={classes.deadline}>
              <Text size="xs" c="var(--hf-muted)">
                decide within
              </Text>
              <Countdown from={change.created_at} until={change.confirm_by} />
            </span>
          )}
          <DecideButtons change={change} />
        </div>
      )}
    </li>
  );
}

/** "14:00 – 14:30", in local time with UTC on hover. */
export function Window({ change }: { change: Pick<Change, "start" | "end"> }) {
  const now = new Date();
  const start = new Date(change.start);
  const end = new Date(change.end);
  return (
    <span title={`${utcTime(start)} to ${utcTime(end)}`}>
      <time dateTime={change.start}>{localMinute(start, now)}</time> –{" "}
      <time dateTime={change.end}>
        {localMinute(end, start.toDateString() === end.toDateString() ? end : now)}
      </time>
    </span>
  );
}
