import { Text } from "@mantine/core";
import { IconChevronRight } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import type { Incident } from "../../api/types";
import { plural } from "../../format/number";
import { Ago } from "../../ui/Time";
import { IncidentStatusTag, SeverityTag } from "../../ui/tones";
import classes from "./IncidentRow.module.css";

/** One incident in a list; the whole row leads to it. */
export function IncidentRow({ incident }: { incident: Incident }) {
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
