import { Text } from "@mantine/core";
import { IconTargetArrow } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { targetsQuery } from "../../api/queries";
import type { ScrapeTarget } from "../../api/types";
import { applyTime } from "../../format/number";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { Tag, type Tone } from "../../ui/Tag";
import { Ago } from "../../ui/Time";
import { NoMetrics } from "./NoMetrics";
import { downFirst } from "./order";
import classes from "./SignalsPage.module.css";

/** What is scraped and how the last scrape went, those that fail first. */
export function TargetsPanel() {
  const targets = useQuery(targetsQuery);
  const items = targets.data?.items ?? [];
  const up = items.filter(({ health }) => health === "up").length;
  return (
    <Panel
      title="Scrape targets"
      hint={items.length > 0 ? `${up} of ${items.length} up` : undefined}
      testid="targets"
    >
      <Loaded query={targets} rows={3}>
        {(data) => {
          if (data.source === "none") return <NoMetrics />;
          if (data.items.length === 0) {
            return (
              <Empty icon={<IconTargetArrow size={22} />} title="Nothing is scraped">
                List gateways and engines under <code>metrics.jobs</code>, or as scrape
                configurations of your Prometheus.
              </Empty>
            );
          }
          return (
            <ul className="hf-list">
              {downFirst(data.items).map((target) => (
                <Target key={`${target.job} ${target.url}`} target={target} />
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Panel>
  );
}

const healthTones: Record<ScrapeTarget["health"], Tone> = {
  up: "good",
  down: "bad",
  unknown: "neutral",
};

function Target({ target }: { target: ScrapeTarget }) {
  const place = ["service", "environment"].flatMap((name) => target.labels[name] ?? []);
  return (
    <li className={classes.row} data-testid="target">
      <div className={classes.head}>
        <Text size="sm" fw={600}>
          {target.job}
        </Text>
        <Tag tone={healthTones[target.health] ?? "neutral"}>{target.health}</Tag>
        <Text size="xs" c="var(--hf-muted)">
          {place.join(" · ")}
        </Text>
        <Text size="xs" c="var(--hf-muted)" className={classes.end}>
          {target.scraped_at ? <Ago at={target.scraped_at} /> : "not scraped yet"}
          {target.took_seconds !== undefined && ` in ${applyTime(target.took_seconds)}`}
        </Text>
      </div>
      <Text size="xs" c="var(--hf-muted)" className={classes.name}>
        {target.url}
      </Text>
      {target.error && (
        <Text size="sm" c="var(--hf-bad-text)" className={classes.name}>
          {target.error}
        </Text>
      )}
    </li>
  );
}
