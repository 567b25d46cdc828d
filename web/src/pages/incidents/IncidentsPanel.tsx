import { Text } from "@mantine/core";
import { IconChevronRight, IconMoodCheck } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { openIncidentsQuery } from "../../api/queries";
import type { Incident, Severity } from "../../api/types";
import { plural } from "../../format/number";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { Ago } from "../../ui/Time";
import { IncidentStatusTag, SeverityTag } from "../../ui/tones";
import classes from "./IncidentsPanel.module.css";

/** Open incidents, the worst and then the newest first. */
export function IncidentsPanel() {
  const incidents = useQuery(openIncidentsQuery);
  const items = incidents.data?.items;
  return (
    <Panel
      title="Open incidents"
      hint={
        items && items.length > 0
          ? `${items.length}${incidents.data?.next ? "+" : ""} open`
          : undefined
      }
      testid="incidents"
    >
      <Loaded query={incidents}>
        {(data) =>
          data.items.length === 0 ? (
            <Empty icon={<IconMoodCheck size={22} />} title="No open incident">
              Alerts that Alertmanager posts to <code>/hooks/alertmanager</code> open one here. To
              try it on a demo: <code>holdfast demo alert</code>.
            </Empty>
          ) : (
            <ul className="hf-list">
              {worstFirst(data.items).map((incident) => (
                <IncidentRow key={incident.id} incident={incident} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function IncidentRow({ incident }: { incident: Incident }) {
  return (
    <li className={classes.item}>
      <Link
        to="/incidents/$id"
        params={{ id: incident.id }}
        className={classes.row}
        data-severity={incident.severity}
        data-testid="incident"
      >
        <span className={classes.main}>
          <span className={classes.title}>
            <span className={classes.number}>#{incident.number}</span> {incident.title}
          </span>
          <span className={classes.tags}>
            <SeverityTag severity={incident.severity} />
            <IncidentStatusTag status={incident.status} />
            <Text component="span" size="xs" c="var(--hf-muted)">
              {plural(incident.firing, "alert")} firing
              {incident.service && ` · ${incident.service}`}
              {incident.environment && ` · ${incident.environment}`}
              {incident.acked_by && ` · taken by ${incident.acked_by}`}
            </Text>
          </span>
        </span>
        <span className={classes.since}>
          <Ago at={incident.opened_at} />
        </span>
        <IconChevronRight size={18} aria-hidden className={classes.chevron} />
      </Link>
    </li>
  );
}

const severityOrder: readonly Severity[] = ["critical", "error", "warning", "info"];

export function worstFirst(incidents: Incident[]): Incident[] {
  const rank = (incident: Incident) => severityOrder.indexOf(incident.severity);
  return [...incidents].sort((a, b) => rank(a) - rank(b) || b.number - a.number);
}
