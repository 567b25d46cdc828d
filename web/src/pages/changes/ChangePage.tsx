import { Anchor, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { changeQuery } from "../../api/queries";
import type { Change } from "../../api/types";
import { Loaded, Panel } from "../../ui/Panel";
import { Time } from "../../ui/Time";
import { ChangeStatusTag, words } from "../../ui/tones";
import { useTitle } from "../../ui/useTitle";
import { CalendarPanel } from "./CalendarPanel";
import classes from "./ChangePage.module.css";
import { Window } from "./ChangeRow";
import { DecideButtons } from "./DecideButtons";

/** One change, where links from Slack and pipelines lead, and its place in the calendar. */
export function ChangePage() {
  const { id } = useParams({ from: "/app/changes/$id" });
  const change = useQuery(changeQuery(id));
  useTitle(change.data ? `${change.data.service} ${words(change.data.kind)}` : "Change");
  return (
    <div className={classes.page}>
      <Anchor component={Link} to="/" size="sm">
        ← Overview
      </Anchor>
      <Loaded query={change} rows={4}>
        {(data) => <Detail change={data} />}
      </Loaded>
      <CalendarPanel highlight={id} />
    </div>
  );
}

function Detail({ change }: { change: Change }) {
  return (
    <>
      <header className={classes.head}>
        <Title order={1} size="h3">
          {words(change.kind)} of {change.service}
        </Title>
        <ChangeStatusTag status={change.status} />
      </header>
      <Panel title={change.summary || "Details"} testid="change-detail">
        <dl className={classes.facts}>
          <Fact name="Window">
            <Window change={change} />
          </Fact>
          <Fact name="Environment">{change.environment}</Fact>
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
          {change.blockers && change.blockers.length > 0 && (
            <Fact name="Near it">
              {change.blockers.map((blocker) => (
                <Anchor key={blocker} component={Link} to={`/changes/${blocker}`} size="sm" mr={8}>
                  {blocker}
                </Anchor>
              ))}
            </Fact>
          )}
        </dl>
        {change.status === "held" && (
          <div className={classes.decide}>
            <Text size="sm" c="var(--hf-muted)">
              Other changes are near. An approver other than the requester decides.
            </Text>
            <DecideButtons change={change} />
          </div>
        )}
      </Panel>
    </>
  );
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
