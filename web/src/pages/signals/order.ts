import type {
  AlertRule,
  GoldenSignal,
  ScrapeTarget,
  ServiceSignals,
  SignalHealth,
} from "../../api/types";

const healthOrder: readonly SignalHealth[] = ["critical", "warning", "no_data", "ok"];

/** Services by how much they ask of the reader, then by name. What is not known comes before what is fine. */
export function worstHealthFirst(services: readonly ServiceSignals[]): ServiceSignals[] {
  const rank = (one: ServiceSignals) => healthOrder.indexOf(one.health);
  return [...services].sort(
    (a, b) =>
      rank(a) - rank(b) ||
      a.service.localeCompare(b.service) ||
      a.environment.localeCompare(b.environment),
  );
}

/** A line in a curve. */
export type Threshold = { value: number; tone: "warning" | "critical" };

/** The lines that a signal's value should not cross. */
export function thresholdsOf(signal: GoldenSignal): Threshold[] {
  const { warning_above, critical_above, warning_below, critical_below } = signal;
  return [
    ...[warning_above, warning_below].map((value) => ({ value, tone: "warning" as const })),
    ...[critical_above, critical_below].map((value) => ({ value, tone: "critical" as const })),
  ].flatMap(({ value, tone }) => (value === undefined ? [] : [{ value, tone }]));
}

const stateOrder = ["firing", "pending", "inactive"];

/** Rules that fire or cannot be evaluated first. */
export function loudestFirst(rules: readonly AlertRule[]): AlertRule[] {
  const rank = (rule: AlertRule) =>
    rule.health === "err" ? -1 : stateOrder.indexOf(rule.state ?? "inactive");
  return [...rules].sort(
    (a, b) => rank(a) - rank(b) || a.group.localeCompare(b.group) || a.name.localeCompare(b.name),
  );
}

/** Rules by whether they have something to say: alerts that fire, wait or fail, quiet ones, and recordings. */
export function byVoice(rules: readonly AlertRule[]) {
  const sorted = loudestFirst(rules);
  const isLoud = ({ alerting, state, health }: AlertRule) =>
    health === "err" || (alerting && (state === "firing" || state === "pending"));
  return {
    loud: sorted.filter(isLoud),
    quiet: sorted.filter((rule) => rule.alerting && !isLoud(rule)),
    recording: sorted.filter((rule) => !rule.alerting && !isLoud(rule)),
  };
}

/** What a rule means in plain words; its texts with templates are for the alerts it makes. */
export function meaningOf({ annotations = {} }: AlertRule): string | undefined {
  return [annotations.summary, annotations.description].find(
    (text) => text && !text.includes("{{"),
  );
}

const targetOrder: readonly ScrapeTarget["health"][] = ["down", "unknown", "up"];

/** Targets that do not answer first. */
export function downFirst(targets: readonly ScrapeTarget[]): ScrapeTarget[] {
  const rank = (target: ScrapeTarget) => targetOrder.indexOf(target.health);
  return [...targets].sort(
    (a, b) => rank(a) - rank(b) || a.job.localeCompare(b.job) || a.url.localeCompare(b.url),
  );
}
