import { Alert, Anchor, Text, Title, VisuallyHidden } from "@mantine/core";
import { IconInfoCircle } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { problemOf } from "../../api/problem";
import { incidentQuery, runbookRunQuery } from "../../api/queries";
import type { RunbookRun } from "../../api/types";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { GatedButton } from "../../ui/GatedButton";
import { Loaded } from "../../ui/Panel";
import { Ago, Time } from "../../ui/Time";
import { useTitle } from "../../ui/useTitle";
import { answeredMeanwhile } from "./answers";
import { CancelDialog } from "./CancelDialog";
import { PhaseBar } from "./PhaseBar";
import { byPhase, isLiveRun, phaseTexts, sayStep } from "./progress";
import classes from "./RunbookRunPage.module.css";
import { RunLeases } from "./RunLeases";
import { RunSummary } from "./RunSummary";
import { StepCard } from "./StepCard";
import { RunbookStatusTag } from "./statusTags";
import type { Given } from "./useAnswer";

/** One run: where it is, what it asks, what each step showed. */
export function RunbookRunPage() {
  const { id } = useParams({ from: "/app/runbooks/runs/$id" });
  const queries = useQueryClient();
  const run = useQuery(runbookRunQuery(id));
  // Dialogs and notices live here, outside of what a refresh draws anew.
  const [cancelling, setCancelling] = useState(false);
  const [notice, setNotice] = useState<string>();
  useTitle(run.data ? run.data.title : "Runbook run");

  async function refused(given: Given, error: unknown): Promise<void> {
    const fresh = await queries
      .fetchQuery({ ...runbookRunQuery(id), staleTime: 0 })
      .catch(() => undefined);
    const told = fresh && answeredMeanwhile(fresh, given.step, given.attempt);
    setNotice(told ?? problemOf(error).detail ?? problemOf(error).title);
  }

  return (
    <div className={classes.page}>
      <Anchor component={Link} to="/runbooks" size="sm">
        ← Runbooks
      </Anchor>
      <Loaded query={run} rows={6}>
        {(data) => (
          <>
            <Header run={data} onCancel={() => setCancelling(true)} />
            <VisuallyHidden role="status" aria-live="polite" data-testid="said">
              {sayStep(data)}
            </VisuallyHidden>
            {notice && (
              <Alert
                role="alert"
                color="yellow"
                variant="light"
                icon={<IconInfoCircle />}
                title="Somebody was faster"
                withCloseButton
                closeButtonLabel="Close this notice"
                onClose={() => setNotice(undefined)}
                data-testid="notice"
              >
                {notice} What you see below is how it stands now.
              </Alert>
            )}
            <PhaseBar phases={byPhase(data)} />
            {!isLiveRun(data) && <RunSummary run={data} />}
            <RunLeases run={data} />
            {byPhase(data).map(({ phase, steps }) => (
              <section key={phase} aria-label={phaseTexts[phase].name} className={classes.phase}>
                <Title order={2} size="h5">
                  {phaseTexts[phase].name}
                  <Text component="span" size="sm" c="var(--hf-muted)" ml={8} fw={400}>
                    {phaseTexts[phase].text}
                  </Text>
                </Title>
                <ol className={classes.steps}>
                  {steps.map(({ number, state }) => (
                    <StepCard
                      key={state.step.id}
                      run={data}
                      number={number}
                      state={state}
                      onRefused={refused}
                    />
                  ))}
                </ol>
              </section>
            ))}
            <CancelDialog
              run={cancelling ? data : undefined}
              onClose={() => setCancelling(false)}
            />
          </>
        )}
      </Loaded>
    </div>
  );
}

function Header({ run, onCancel }: { run: RunbookRun; onCancel: () => void }) {
  const blocked = whyNot(useMe(), "responder");
  const params = Object.entries(run.params).filter(([, value]) => value !== "");
  return (
    <header className={classes.head}>
      <div className={classes.titles}>
        <div className={classes.tags}>
          <RunbookStatusTag status={run.status} />
          {run.incident && <IncidentLink id={run.incident} />}
          <CalendarLink environment={run.params.environment} />
        </div>
        <Title order={1} size="h3">
          {run.title}
        </Title>
        {params.length > 0 && (
          <dl className={classes.params}>
            {params.map(([name, value]) => (
              <div key={name}>
                <dt>{name.replaceAll("_", " ")}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        )}
        <Text size="sm" c="var(--hf-muted)">
          Started by {run.started_by} <Ago at={run.started_at} /> (<Time at={run.started_at} />) ·
          version <code title={run.version}>{run.version.slice(0, 8)}</code>, frozen for this run
        </Text>
      </div>
      {isLiveRun(run) && (
        <GatedButton
          variant="default"
          blocked={blocked}
          onClick={onCancel}
          data-testid="cancel-runbook"
        >
          Cancel run…
        </GatedButton>
      )}
    </header>
  );
}

/** Whoever looks for the change that did it looks there first. */
function CalendarLink({ environment }: { environment: string | undefined }) {
  return (
    <Anchor
      component={Link}
      to={environment ? `/calendar?environment=${encodeURIComponent(environment)}` : "/calendar"}
      size="sm"
    >
      Calendar{environment && ` of ${environment}`}
    </Anchor>
  );
}

function IncidentLink({ id }: { id: string }) {
  const incident = useQuery(incidentQuery(id)).data?.incident;
  return (
    <Anchor component={Link} to={`/incidents/${id}`} size="sm">
      {incident ? `Incident #${incident.number}: ${incident.title}` : "Its incident"}
    </Anchor>
  );
}
