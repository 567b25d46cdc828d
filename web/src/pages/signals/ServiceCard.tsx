import { Text } from "@mantine/core";
import { IconBell } from "@tabler/icons-react";
import type { GoldenSignal, ServiceSignals } from "../../api/types";
import { withHoles } from "../../charts/points";
import { Sparkline } from "../../charts/Sparkline";
import { commonSpan, type Span } from "../../charts/sparkline";
import { localTime, utcTime } from "../../format/time";
import { measure } from "../../format/unit";
import { Tag } from "../../ui/Tag";
import { HealthTag, healthTone } from "../../ui/tones";
import classes from "./HealthPanel.module.css";
import { thresholdsOf } from "./order";

/** One service in one environment: its health, what fires, and each golden signal with its curve. */
export function ServiceCard({ signals }: { signals: ServiceSignals }) {
  const curves = signals.signals.map((signal) => ({ signal, points: withHoles(signal.points) }));
  const span = commonSpan(curves.map(({ points }) => points));
  return (
    <article
      className={classes.card}
      data-tone={healthTone(signals.health)}
      data-testid="service"
      aria-label={`${signals.service}, ${signals.environment}`}
    >
      <div className={classes.head}>
        <Text fw={600} size="sm">
          {signals.service}
        </Text>
        <Text size="sm" c="var(--hf-muted)">
          {signals.environment}
        </Text>
        <HealthTag health={signals.health} />
        {signals.firing.map((rule) => (
          <Tag key={rule} tone="bad" icon={<IconBell size={13} aria-hidden />} title="Fires now">
            {rule}
          </Tag>
        ))}
      </div>
      <dl className={classes.signals}>
        {curves.map(({ signal, points }) => (
          <Signal key={signal.name} signal={signal} points={points} span={span} />
        ))}
      </dl>
    </article>
  );
}

function Signal(props: {
  signal: GoldenSignal;
  points: ReturnType<typeof withHoles>;
  span: Span | undefined;
}) {
  const { signal, points, span } = props;
  const value = measure(signal.value, signal.unit);
  return (
    <div className={classes.signal} data-health={signal.health} data-testid="signal">
      <dt title={signal.help}>
        {signal.title}
        {signal.source && <span className={classes.source}>{signal.source}</span>}
      </dt>
      <dd className={classes.value} title={when(signal.at)}>
        {value ? (
          <>
            <span className={classes.figure}>{value.figure}</span>
            <span className={classes.unit}>{value.unit}</span>
          </>
        ) : (
          <span className={classes.none}>no data</span>
        )}
      </dd>
      <dd className={classes.curve}>
        <Sparkline
          name={signal.title}
          unit={signal.unit}
          points={points}
          span={span}
          thresholds={thresholdsOf(signal)}
        />
      </dd>
    </div>
  );
}

function when(at: string | undefined): string | undefined {
  if (!at) return undefined;
  const date = new Date(at);
  return `Measured ${localTime(date, new Date())} local, ${utcTime(date)}`;
}
