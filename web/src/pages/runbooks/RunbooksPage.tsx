import { Text, Title } from "@mantine/core";
import { IconBook2, IconPlayerPlay } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { runbooksQuery } from "../../api/queries";
import type { Runbook, RunbookRun } from "../../api/types";
import { plural } from "../../format/number";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { GatedButton } from "../../ui/GatedButton";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { Ago } from "../../ui/Time";
import { useTitle } from "../../ui/useTitle";
import { byPhaseOf, phaseTexts } from "./progress";
import { runbookRunsQuery } from "./queries";
import classes from "./RunbooksPage.module.css";
import { StartRunbookDialog } from "./StartRunbookDialog";
import { RunbookStatusTag } from "./statusTags";

/** What can be run step by step, and what was run lately. */
export function RunbooksPage() {
  useTitle("Runbooks");
  const runbooks = useQuery(runbooksQuery);
  const [starting, setStarting] = useState<string>();
  return (
    <div className={classes.page}>
      <Title order={1} size="h3">
        Runbooks
      </Title>
      <div className={classes.columns}>
        <Panel
          title="To start"
          hint={runbooks.data && plural(runbooks.data.items.length, "runbook")}
          testid="runbooks"
        >
          <Loaded query={runbooks} rows={3}>
            {({ items }) =>
              items.length === 0 ? (
                <Empty icon={<IconBook2 size={22} />} title="There is no runbook">
                  This server was built without a library.
                </Empty>
              ) : (
                <ul className="hf-list">
                  {items.map((runbook) => (
                    <RunbookRow
                      key={runbook.id}
                      runbook={runbook}
                      onStart={() => setStarting(runbook.id)}
                    />
                  ))}
                </ul>
              )
            }
          </Loaded>
        </Panel>
        <RecentRuns />
      </div>
      {starting && <StartRunbookDialog runbook={starting} onClose={() => setStarting(undefined)} />}
    </div>
  );
}

function RunbookRow({ runbook, onStart }: { runbook: Runbook; onStart: () => void }) {
  const blocked = whyNot(useMe(), "responder");
  return (
    <li className={classes.row} data-testid="runbook">
      <div className={classes.main}>
        <Title order={3} size="h6">
          {runbook.title}
        </Title>
        <Text size="sm">{runbook.summary}</Text>
        <details className={classes.details}>
          <summary>
            {plural(runbook.steps.length, "step")}
            {runbook.owner && ` · owned by ${runbook.owner}`} · version{" "}
            <code title={runbook.version}>{runbook.version.slice(0, 8)}</code>
          </summary>
          {byPhaseOf(runbook.steps).map(({ phase, steps }) => (
            <div key={phase}>
              <Text component="h4" className={classes.phase}>
                {phaseTexts[phase].name}
              </Text>
              <ol className={classes.steps}>
                {steps.map(({ number, step }) => (
                  <li key={step.id} value={number}>
                    {step.title}
                  </li>
                ))}
              </ol>
            </div>
          ))}
        </details>
      </div>
      <GatedButton
        size="sm"
        leftSection={<IconPlayerPlay size={16} aria-hidden />}
        blocked={blocked}
        onClick={onStart}
        aria-label={`Start: ${runbook.title}`}
        data-testid="start-runbook"
      >
        Start…
      </GatedButton>
    </li>
  );
}

function RecentRuns() {
  const runs = useQuery(runbookRunsQuery);
  return (
    <Panel title="Runs" hint="newest first" testid="runbook-runs">
      <Loaded query={runs} rows={3}>
        {({ items }) =>
          items.length === 0 ? (
            <Text size="sm" c="var(--hf-muted)">
              None yet.
            </Text>
          ) : (
            <ul className="hf-list">
              {items.map((run) => (
                <RunLine key={run.id} run={run} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function RunLine({ run }: { run: RunbookRun }) {
  const values = Object.values(run.params).filter(Boolean).join(", ");
  return (
    <li className={classes.run} data-testid="runbook-run">
      <div className={classes.runHead}>
        <Link to="/runbooks/runs/$id" params={{ id: run.id }} className={classes.link}>
          {run.title}
        </Link>
        <RunbookStatusTag status={run.status} />
      </div>
      <Text size="xs" c="var(--hf-muted)" className={classes.meta}>
        {values && `${values} · `}
        {run.started_by}, <Ago at={run.started_at} />
      </Text>
    </li>
  );
}
