import { Button, Text } from "@mantine/core";
import { IconBook2 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { incidentRunbookRunsQuery } from "../../api/queries";
import type { IncidentDetail, RunbookSuggestion } from "../../api/types";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { GatedButton } from "../../ui/GatedButton";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { RunbookRunList } from "../overview/RunbookRunsPanel";
import classes from "./IncidentPage.module.css";

type Props = {
  detail: IncidentDetail;
  /** What to start; undefined lets the person choose. */
  onStart: (suggestion: RunbookSuggestion | undefined) => void;
};

/** Runbooks that were started for this incident, and those that fit it. */
export function RunbooksPanel({ detail: { incident, runbooks }, onStart }: Props) {
  const runs = useQuery(incidentRunbookRunsQuery(incident.id));
  const blocked = whyNot(useMe(), "responder");
  return (
    <Panel title="Runbooks" testid="runbooks">
      <Loaded query={runs} rows={1}>
        {({ items }) => (items.length > 0 ? <RunbookRunList runs={items} /> : null)}
      </Loaded>
      {runbooks.length === 0 && runs.data?.items.length === 0 && (
        <Empty icon={<IconBook2 size={22} />} title="No runbook is suggested">
          None matches the labels of these alerts. Choose one yourself below.
        </Empty>
      )}
      <ul className="hf-list">
        {runbooks.map((suggestion) => (
          <li key={suggestion.runbook} className={classes.suggestion}>
            <div className={classes.why}>
              <Text size="sm" fw={600}>
                {suggestion.title}
              </Text>
              <Text size="sm" c="var(--hf-muted)">
                {suggestion.why}
                {suggestion.missing.length > 0 && ` You fill in: ${suggestion.missing.join(", ")}.`}
              </Text>
            </div>
            <GatedButton
              size="sm"
              blocked={blocked}
              onClick={() => onStart(suggestion)}
              aria-label={`Start: ${suggestion.title}`}
              data-testid="runbook-suggestion"
            >
              Start…
            </GatedButton>
          </li>
        ))}
      </ul>
      <Button variant="subtle" size="xs" mt={8} onClick={() => onStart(undefined)}>
        Another runbook…
      </Button>
    </Panel>
  );
}
