import { Anchor, Button, Text, Title } from "@mantine/core";
import { IconBolt, IconExternalLink } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { incidentQuery } from "../../api/queries";
import type { ActionRun, IncidentDetail, RunbookSuggestion, Suggestion } from "../../api/types";
import { plural } from "../../format/number";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { Ago, Time } from "../../ui/Time";
import { IncidentStatusTag, SeverityTag } from "../../ui/tones";
import { useTitle } from "../../ui/useTitle";
import { ActionDialog, type Wanted } from "../actions/ActionDialog";
import { isLink } from "../changes/ChangePage";
import { RevertDialog } from "../runs/RevertDialog";
import { RunRow } from "../runs/RunRow";
import { AlertList } from "./AlertList";
import { IncidentButtons } from "./IncidentButtons";
import classes from "./IncidentPage.module.css";
import { RunbooksPanel } from "./RunbooksPanel";
import { SignalsPanel } from "./SignalsPanel";
import { Timeline } from "./Timeline";

const StartRunbookDialog = lazy(async () => ({
  default: (await import("../runbooks/StartRunbookDialog")).StartRunbookDialog,
}));

/** One incident: what is wrong, what can be done, what was done, what happened. */
export function IncidentPage() {
  const { id } = useParams({ from: "/app/incidents/$id" });
  const detail = useQuery(incidentQuery(id));
  // Dialogs live here, outside of what a refresh draws anew.
  const [wanted, setWanted] = useState<Wanted>();
  const [reverting, setReverting] = useState<ActionRun>();
  const [choosing, setChoosing] = useState(false);
  const { runbook } = useSearch({ from: "/app/incidents/$id" });
  const navigate = useNavigate();
  const show = (search: { runbook?: string }) =>
    void navigate({ to: "/incidents/$id", params: { id }, search, replace: true });
  const incident = detail.data?.incident;
  useTitle(incident ? `#${incident.number} ${incident.title}` : "Incident");

  function start(suggestion: RunbookSuggestion | undefined): void {
    if (suggestion) show({ runbook: suggestion.runbook });
    else setChoosing(true);
  }

  return (
    <div className={classes.page}>
      <Anchor component={Link} to="/" size="sm">
        ← Overview
      </Anchor>
      <Loaded query={detail} rows={6}>
        {(data) => (
          <>
            <Header detail={data} />
            <div className={classes.columns}>
              <div className={classes.column}>
                <Suggestions
                  detail={data}
                  onWant={(suggestion) => setWanted({ suggestion, incident: id })}
                />
                <RunbooksPanel detail={data} onStart={start} />
                <Runs runs={data.runs} onRevert={setReverting} />
                <SignalsPanel detail={data} />
              </div>
              <div className={classes.column}>
                <Panel
                  title="Alerts"
                  hint={`${data.incident.firing} firing, ${data.incident.resolved} resolved`}
                >
                  <AlertList alerts={data.alerts} truncated={data.incident.truncated} />
                </Panel>
                <Timeline incident={id} />
              </div>
            </div>
          </>
        )}
      </Loaded>
      <ActionDialog wanted={wanted} onClose={() => setWanted(undefined)} />
      <RevertDialog run={reverting} onClose={() => setReverting(undefined)} />
      {(runbook || choosing) && detail.data && (
        <Suspense>
          <StartRunbookDialog
            key={runbook ?? ""}
            runbook={runbook}
            params={detail.data.runbooks.find((one) => one.runbook === runbook)?.params}
            incident={id}
            onClose={() => {
              setChoosing(false);
              if (runbook) show({});
            }}
          />
        </Suspense>
      )}
    </div>
  );
}

function Header({ detail: { incident } }: { detail: IncidentDetail }) {
  return (
    <header className={classes.head}>
      <div className={classes.titles}>
        <div className={classes.tags}>
          <SeverityTag severity={incident.severity} />
          <span role="status" aria-live="polite">
            <IncidentStatusTag status={incident.status} />
          </span>
          <Text component="span" size="sm" c="var(--hf-muted)">
            {[incident.service, incident.environment].filter(Boolean).join(" · ")}
          </Text>
        </div>
        <Title order={1} size="h3">
          <span className={classes.number}>#{incident.number}</span> {incident.title}
        </Title>
        {incident.summary && <Text size="sm">{incident.summary}</Text>}
        <Text size="sm" c="var(--hf-muted)">
          Opened <Ago at={incident.opened_at} /> (<Time at={incident.opened_at} />)
          {incident.acked_by && incident.acked_at && (
            <>
              {" · "}taken by {incident.acked_by} <Ago at={incident.acked_at} />
            </>
          )}
          {incident.resolved_at && (
            <>
              {" · "}resolved <Time at={incident.resolved_at} />
            </>
          )}
          <Outside href={incident.runbook_url} text="Runbook" />
          <Outside href={incident.source_url} text="Source" />
        </Text>
      </div>
      <IncidentButtons incident={incident} />
    </header>
  );
}

function Outside({ href, text }: { href: string | undefined; text: string }) {
  if (!isLink(href)) return null;
  return (
    <>
      {" · "}
      <Anchor href={href} target="_blank" rel="noreferrer" size="sm">
        {text} <IconExternalLink size={14} aria-hidden className={classes.outside} />
      </Anchor>
    </>
  );
}

function Suggestions(props: {
  detail: IncidentDetail;
  onWant: (suggestion: Suggestion | undefined) => void;
}) {
  const { suggestions, incident } = props.detail;
  return (
    <Panel
      title="Suggested actions"
      hint="Each shows its plan first; nothing runs before you confirm."
      testid="suggestions"
    >
      {suggestions.length === 0 && (
        <Empty icon={<IconBolt size={22} />} title="Nothing is suggested">
          {incident.status === "resolved"
            ? "The incident is resolved. Actions can still be run."
            : "No action matches the labels of these alerts. Choose one yourself below."}
        </Empty>
      )}
      <ul className="hf-list">
        {suggestions.map((suggestion) => (
          <li
            key={`${suggestion.action} ${JSON.stringify(suggestion.params)}`}
            className={classes.suggestion}
          >
            <div className={classes.why}>
              <Text size="sm" fw={600}>
                {suggestion.title}
              </Text>
              <Text size="sm" c="var(--hf-muted)">
                {suggestion.why}
              </Text>
            </div>
            <Button
              size="sm"
              onClick={() => props.onWant(suggestion)}
              aria-label={`Plan: ${suggestion.title}`}
              data-testid="suggestion"
            >
              Plan…
            </Button>
          </li>
        ))}
      </ul>
      <Button variant="subtle" size="xs" mt={8} onClick={() => props.onWant(undefined)}>
        Another action…
      </Button>
    </Panel>
  );
}

function Runs({ runs, onRevert }: { runs: ActionRun[]; onRevert: (run: ActionRun) => void }) {
  return (
    <Panel
      title="Action runs"
      hint={runs.length > 0 ? plural(runs.length, "run") : undefined}
      testid="runs"
    >
      {runs.length === 0 ? (
        <Text size="sm" c="var(--hf-muted)">
          None yet.
        </Text>
      ) : (
        <ul className="hf-list">
          {runs.map((run) => (
            <RunRow key={run.id} run={run} onRevert={onRevert} />
          ))}
        </ul>
      )}
    </Panel>
  );
}
