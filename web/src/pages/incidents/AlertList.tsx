import { Anchor, Text } from "@mantine/core";
import type { Alert } from "../../api/types";
import { plural } from "../../format/number";
import { Tag } from "../../ui/Tag";
import { Ago, Time } from "../../ui/Time";
import { SeverityTag } from "../../ui/tones";
import { isLink } from "../changes/ChangePage";
import classes from "./AlertList.module.css";

/** The alerts of an incident, firing ones first. */
export function AlertList({ alerts, truncated }: { alerts: Alert[]; truncated: number }) {
  return (
    <>
      <ul className="hf-list">
        {firingFirst(alerts).map((alert) => (
          <AlertRow key={alert.id} alert={alert} />
        ))}
      </ul>
      {truncated > 0 && (
        <Text size="sm" c="var(--hf-muted)" mt={8}>
          The source left out {plural(truncated, "more alert")}.
        </Text>
      )}
    </>
  );
}

function AlertRow({ alert }: { alert: Alert }) {
  const text = alert.annotations.summary || alert.annotations.description;
  const labels = Object.entries(alert.labels).filter(([name]) => name !== "alertname");
  return (
    <li className={classes.row} data-resolved={alert.status === "resolved" || undefined}>
      <div className={classes.head}>
        <Tag tone={alert.status === "firing" ? "bad" : "good"}>{alert.status}</Tag>
        <SeverityTag severity={alert.severity} />
        <Text size="sm" fw={600} className={classes.name}>
          {isLink(alert.generator_url) ? (
            <Anchor href={alert.generator_url} target="_blank" rel="noreferrer" inherit>
              {alert.labels.alertname ?? alert.fingerprint}
            </Anchor>
          ) : (
            (alert.labels.alertname ?? alert.fingerprint)
          )}
        </Text>
        <Text size="xs" c="var(--hf-muted)" className={classes.since}>
          {alert.status === "resolved" && alert.ends_at ? (
            <>
              ended <Time at={alert.ends_at} />
            </>
          ) : (
            <Ago at={alert.starts_at} />
          )}
        </Text>
      </div>
      {text && (
        <Text size="sm" className={classes.name}>
          {text}
        </Text>
      )}
      <ul className={classes.labels} aria-label="Labels">
        {labels.map(([name, value]) => (
          <li key={name}>
            {name}={value}
          </li>
        ))}
      </ul>
    </li>
  );
}

export function firingFirst(alerts: Alert[]): Alert[] {
  const rank = (alert: Alert) => (alert.status === "firing" ? 0 : 1);
  return [...alerts].sort(
    (a, b) => rank(a) - rank(b) || Date.parse(b.starts_at) - Date.parse(a.starts_at),
  );
}
