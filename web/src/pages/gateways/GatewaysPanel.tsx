import { Text } from "@mantine/core";
import { IconRouter } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { gatewaysQuery } from "../../api/queries";
import type { Gateway } from "../../api/types";
import { applyTime, noData, percent, rate } from "../../format/number";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { Tag } from "../../ui/Tag";
import { Ago } from "../../ui/Time";
import { breakerTone, GatewayStateTag, words } from "../../ui/tones";
import classes from "./GatewaysPanel.module.css";

/** Which gateway holds which revision, and how it is doing. */
export function GatewaysPanel() {
  const gateways = useQuery(gatewaysQuery);
  return (
    <Panel
      title="Gateways"
      hint={
        gateways.data && (
          <span title={`Lineage ${gateways.data.lineage}`}>
            newest revision {gateways.data.revision}
          </span>
        )
      }
      testid="gateways"
    >
      <Loaded query={gateways}>
        {(data) =>
          data.items.length === 0 ? (
            <Empty icon={<IconRouter size={22} />} title="No gateway has connected yet">
              Start one with <code>gpuguard run</code>, with this server&apos;s address and a
              gateway token (<code>holdfast token create --kind gateway --name NAME</code>).
            </Empty>
          ) : (
            <ul className="hf-list">
              {data.items.map((gateway) => (
                <GatewayRow key={gateway.name} gateway={gateway} newest={data.revision} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function GatewayRow({ gateway, newest }: { gateway: Gateway; newest: number }) {
  return (
    <li className={classes.row} data-testid="gateway">
      <div className={classes.head}>
        <Text
          fw={600}
          size="sm"
          className={classes.name}
          title={`gpuguard ${gateway.version}, instance ${gateway.instance}`}
        >
          {gateway.name}
        </Text>
        <GatewayStateTag state={gateway.state} />
        <Text size="sm" c="var(--hf-muted)" className={classes.revision}>
          revision {gateway.revision}
          {gateway.state === "behind" && ` of ${newest}`}
          {gateway.result === "applied" && ` in ${applyTime(gateway.apply_seconds)}`}
        </Text>
      </div>
      <dl className={classes.figures}>
        <Figure name="Requests/s" value={rate(gateway.requests_per_second)} />
        <Figure name="Errors" value={percent(gateway.error_ratio)} />
        <Figure
          name="In flight"
          value={gateway.state === "stale" ? noData : String(gateway.in_flight)}
        />
        <div>
          <dt>Heard</dt>
          <dd>
            <Ago at={gateway.last_heard_at} />
          </dd>
        </div>
      </dl>
      <Breakers gateway={gateway} />
      {gateway.error && (
        <Text size="sm" c="var(--hf-bad-text)" className={classes.error}>
          {gateway.rejected_revision !== undefined &&
            `Refused revision ${gateway.rejected_revision}: `}
          {gateway.error}
        </Text>
      )}
    </li>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd data-missing={value === noData || undefined}>{value}</dd>
    </div>
  );
}

function Breakers({ gateway }: { gateway: Gateway }) {
  const breakers = Object.entries(gateway.breakers).sort(([a], [b]) => a.localeCompare(b));
  if (breakers.length === 0) return null;
  return (
    <ul className={classes.breakers} aria-label={`Breakers of ${gateway.name}`}>
      {breakers.map(([dependency, breaker]) => (
        <li key={dependency}>
          <Tag
            tone={breakerTone(breaker.state)}
            title={
              breaker.calls === 0
                ? "no calls in its window"
                : `${percent(breaker.failure_rate)} of ${breaker.calls} calls failed`
            }
          >
            {dependency}: {words(breaker.state)}
          </Tag>
        </li>
      ))}
    </ul>
  );
}
