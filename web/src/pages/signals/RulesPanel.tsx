import { Text } from "@mantine/core";
import { IconRuler2 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { rulesQuery } from "../../api/queries";
import type { AlertRule } from "../../api/types";
import { plural } from "../../format/number";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { Tag, type Tone } from "../../ui/Tag";
import { Ago } from "../../ui/Time";
import { NoMetrics } from "./NoMetrics";
import { byVoice, meaningOf } from "./order";
import classes from "./SignalsPage.module.css";

/** The alert rules that say something now; quiet ones and recording rules are folded away. */
export function RulesPanel() {
  const rules = useQuery(rulesQuery);
  const firing = rules.data?.items.filter(({ state }) => state === "firing").length ?? 0;
  return (
    <Panel title="Rules" hint={firing > 0 ? `${firing} firing` : undefined} testid="rules">
      <Loaded query={rules} rows={4}>
        {({ items, source }) => {
          if (source === "none") return <NoMetrics />;
          if (items.length === 0) {
            return (
              <Empty icon={<IconRuler2 size={22} />} title="Prometheus has no rules">
                The rule files of holdfast are under <code>deploy/prometheus/rules</code>; name them
                in <code>rule_files</code> of your Prometheus.
              </Empty>
            );
          }
          const { loud, quiet, recording } = byVoice(items);
          return (
            <>
              {loud.length === 0 && (
                <Text size="sm" c="var(--hf-muted)">
                  No alert rule fires, waits to fire or fails.
                </Text>
              )}
              <Rules rules={loud} />
              <Folded name="quiet alert rule" rules={quiet} />
              <Folded name="recording rule" rules={recording} />
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Rules({ rules }: { rules: readonly AlertRule[] }) {
  return (
    <ul className="hf-list">
      {rules.map((rule) => (
        <Rule key={`${rule.group} ${rule.name} ${rule.query}`} rule={rule} />
      ))}
    </ul>
  );
}

function Folded({ name, rules }: { name: string; rules: readonly AlertRule[] }) {
  if (rules.length === 0) return null;
  return (
    <details className={classes.folded}>
      <summary>{plural(rules.length, name)}</summary>
      <Rules rules={rules} />
    </details>
  );
}

const stateTones: Record<NonNullable<AlertRule["state"]>, Tone> = {
  firing: "bad",
  pending: "warning",
  inactive: "good",
};

function Rule({ rule }: { rule: AlertRule }) {
  const meaning = meaningOf(rule);
  return (
    <li className={classes.row} data-testid="rule">
      <div className={classes.head}>
        <Text size="sm" fw={600} className={classes.name}>
          {rule.name}
        </Text>
        {rule.state && <Tag tone={stateTones[rule.state] ?? "neutral"}>{rule.state}</Tag>}
        {rule.health === "err" && <Tag tone="bad">cannot be evaluated</Tag>}
        {rule.labels?.severity && <Tag tone="neutral">{rule.labels.severity}</Tag>}
        {rule.for && rule.for !== "0s" && (
          <Text size="xs" c="var(--hf-muted)">
            for {rule.for}
          </Text>
        )}
        {rule.evaluated_at && (
          <Text size="xs" c="var(--hf-muted)" className={classes.end}>
            evaluated <Ago at={rule.evaluated_at} />
          </Text>
        )}
      </div>
      {meaning && <Text size="sm">{meaning}</Text>}
      <code className={classes.query}>{rule.query}</code>
      {rule.error && (
        <Text size="sm" c="var(--hf-bad-text)" className={classes.name}>
          {rule.error}
        </Text>
      )}
      {(rule.alerts ?? []).map((alert) => (
        <Text
          key={JSON.stringify(alert.labels)}
          size="xs"
          c="var(--hf-muted)"
          className={classes.name}
        >
          {alert.state} since <Ago at={alert.active_at} />:{" "}
          {["service", "environment", "dependency"]
            .flatMap((name) => alert.labels[name] ?? [])
            .join(" · ")}
        </Text>
      ))}
    </li>
  );
}
