import { Text } from "@mantine/core";
import { IconBook2 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { liveRunbookRunsQuery } from "../../api/queries";
import type { RunbookRun } from "../../api/types";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { TextLink } from "../../ui/TextLink";
import { Ago } from "../../ui/Time";
import { currentStep } from "../runbooks/progress";
import { RunbookStatusTag } from "../runbooks/statusTags";
import { askingFirst } from "./order";
import classes from "./RunbookRunsPanel.module.css";

/** Runbooks that go on now, those that wait for a person first. */
export function RunbookRunsPanel() {
  const runs = useQuery(liveRunbookRunsQuery);
  const waiting = runs.data?.items.filter(({ status }) => status === "waiting").length ?? 0;
  return (
    <Panel
      title="Running runbooks"
      hint={waiting > 0 ? `${waiting} waiting for a person` : undefined}
      testid="runbook-runs"
    >
      <Loaded query={runs} rows={1}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconBook2 size={22} />} title="No runbook is running">
              Incidents suggest one; <TextLink to="/runbooks">all runbooks</TextLink> can be started
              without an incident.
            </Empty>
          ) : (
            <RunbookRunList runs={items} />
          )
        }
      </Loaded>
    </Panel>
  );
}

/** Runs with the step they are at and what it asks; each leads to its page. */
export function RunbookRunList({ runs }: { runs: readonly RunbookRun[] }) {
  return (
    <ul className="hf-list">
      {askingFirst(runs).map((run) => (
        <RunbookRunRow key={run.id} run={run} />
      ))}
    </ul>
  );
}

function RunbookRunRow({ run }: { run: RunbookRun }) {
  const state = currentStep(run);
  return (
    <li className={classes.row} data-testid="runbook-run" data-status={run.status}>
      <div className={classes.head}>
        <TextLink to="/runbooks/runs/$id" params={{ id: run.id }} size="sm" fw={600}>
          {run.title}
        </TextLink>
        <RunbookStatusTag status={run.status} />
        <Text size="xs" c="var(--hf-muted)" className={classes.end}>
          {run.started_by} · <Ago at={run.started_at} />
        </Text>
      </div>
      {state && (
        <Text size="sm" className={classes.step}>
          Step {run.current + 1} of {run.steps.length}: {state.step.question ?? state.step.title}
          {state.answers.length > 0 && (
            <Text span c="var(--hf-muted)">
              {" "}
              ({state.answers.join(", ")})
            </Text>
          )}
        </Text>
      )}
    </li>
  );
}
