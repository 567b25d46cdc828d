import { Anchor, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { Change } from "../../api/types";
import { utcTime } from "../../format/time";
import { Time } from "../../ui/Time";
import classes from "./ChangePage.module.css";
import { Window } from "./ChangeRow";
import { DecideButtons } from "./DecideButtons";
import { WhyDecision } from "./WhyDecision";

/** Everything about one change: facts, why it stands as it does, and the buttons while it is held. */
export function ChangeDetail({ change }: { change: Change }) {
  return (
    <>
      <dl className={classes.facts}>
        <Fact name="Window">
          <Window change={change} />
          <Text size="xs" c="var(--hf-muted)">
            {utcWindow(change)}
          </Text>
        </Fact>
        <Fact name="Environment">{change.environment || "every environment"}</Fact>
        <Fact name="Requested by">{change.requester || "a pipeline"}</Fact>
        <Fact name="Run">
          {isLink(change.url) ? (
            <Anchor href={change.url} rel="noreferrer" target="_blank" size="sm">
              {change.run_id}
            </Anchor>
          ) : (
            change.run_id
          )}
        </Fact>
        {change.confirm_by && change.status === "held" && (
          <Fact name="Decide by">
            <Time at={change.confirm_by} />
          </Fact>
        )}
        {change.decided_by && (
          <Fact name="Decided by">
            {change.decided_by} {change.decided_at && <Time at={change.decided_at} />}
          </Fact>
        )}
        {change.finished_at && (
          <Fact name="Finished">
            <Time at={change.finished_at} />
          </Fact>
        )}
      </dl>
      <WhyDecision change={change} />
      {change.status === "held" && (
        <div className={classes.decide}>
          <Text size="sm" c="var(--hf-muted)">
            An approver other than the requester decides.
          </Text>
          <DecideButtons change={change} />
        </div>
      )}
    </>
  );
}

/** "2026-11-30 14:00 – 14:30 UTC". */
function utcWindow({ start, end }: Pick<Change, "start" | "end">): string {
  const from = utcTime(new Date(start)).slice(0, 16);
  const until = utcTime(new Date(end)).slice(0, 16);
  const sameDay = from.slice(0, 10) === until.slice(0, 10);
  return `${from} – ${sameDay ? until.slice(11) : until} UTC`;
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Pipelines write the URL; only ordinary web addresses become links. */
export function isLink(url: string | undefined): url is string {
  return url !== undefined && /^https?:\/\//i.test(url);
}
