import type { components } from "../../api/schema.gen";
import type { Change } from "../../api/types";
import { parseDuration } from "../../format/duration";
import { localTime } from "../../format/time";
import { type Catalogue, distance, relationOf, type Span, windowOf } from "../changes/guard";
import { distanceText, type Why } from "../changes/why";
import { dayOf, localMinuteOf } from "./day";

export type ChangeRequest = components["schemas"]["ChangeRequest"];
export type ChangeDecision = components["schemas"]["ChangeDecision"];
export type Asked = {
  service: string;
  environment: string;
  kind: NonNullable<ChangeRequest["kind"]>;
  duration: string;
  /** As the browser's field has it, in local time; empty means now. */
  start: string;
};
export type Answered = { wanted: Asked; start: string; decision: ChangeDecision };

/** What people may ask for; emergency actions enter by themselves. */
export const kinds: Asked["kind"][] = [
  "deploy",
  "scale",
  "flag",
  "config",
  "migration",
  "rebalance",
  "traffic_event",
  "rollback",
];

export const durations = [
  { value: "5m", label: "5 min" },
  { value: "15m", label: "15 min" },
  { value: "30m", label: "30 min" },
  { value: "1h", label: "1 h" },
  { value: "2h", label: "2 h" },
  { value: "4h", label: "4 h" },
  { value: "8h", label: "8 h" },
];

/** The question to send. Each has a run of its own, so that no claim of a real run answers it. */
export function previewRequest({ start, ...rest }: Asked): ChangeRequest {
  const at = new Date(start);
  const known = start !== "" && !Number.isNaN(at.getTime());
  return {
    ...rest,
    run_id: `console-preview-${crypto.randomUUID()}`,
    ...(known && { start: at.toISOString() }),
  };
}

/** The window that was asked for, in ms. */
export function askedSpan({ wanted, start }: Answered): Span {
  const begin = Date.parse(start);
  return { start: begin, end: begin + (parseDuration(wanted.duration) ?? 0) };
}

/** "2026-11-30T14:30" of a time, as the browser's field wants it; rounded up, so that it is not too early. */
export function localInput(at: string): string {
  const minute = 60_000;
  const date = new Date(Math.ceil(Date.parse(at) / minute) * minute);
  return `${dayOf(date.getTime())}T${localMinuteOf(date)}`;
}

/** The reasons of a decision: for changes the distance to each, for the rest what the server says. */
export function reasonsOf(asked: Answered, catalogue: Catalogue, now: number): Why[] {
  const { decision, wanted } = asked;
  const own = askedSpan(asked);
  const tone = decision.decision === "allow" ? "good" : "bad";
  const told: Why[] = decision.reasons
    .filter(({ code }) => code !== "guard_band" || decision.blockers.length === 0)
    .map(({ text }) => ({ tone, text: sentence(withLocalTimes(text, now)) }));
  const near = [...decision.blockers].sort(
    (a, b) => distance(own, windowOf(a, now)) - distance(own, windowOf(b, now)),
  );
  return [
    ...told,
    ...near.map((change: Change): Why => {
      return {
        tone: "warning",
        text: distanceText(own, wanted, change, catalogue, now),
        change,
      };
    }),
  ];
}

/** The services whose changes count for one, in words: "same service, depends on llm, used by web". */
export function neighbourhoodText(
  catalogue: Catalogue,
  { service, environment }: Pick<Asked, "service" | "environment">,
): string {
  const scope = catalogue.environments.find(({ name }) => name === environment)?.scope;
  if (scope === "environment") return `every other change in ${environment}`;
  const parts = [`changes of ${service} itself`];
  for (const relation of ["depends on", "used by"] as const) {
    const names = catalogue.services
      .map(({ name }) => name)
      .filter((name) => relationOf(catalogue, environment, service, name) === relation);
    if (names.length > 0) {
      const what = relation === "depends on" ? "what it depends on" : "what uses it";
      parts.push(`${what} (${names.join(", ")})`);
    }
  }
  return parts.join(", ");
}

/** The server writes times in UTC, to the microsecond; people read them in local time. */
export function withLocalTimes(text: string, now: number): string {
  return text.replace(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z/g, (time) =>
    localTime(new Date(time), new Date(now)),
  );
}

function sentence(text: string): string {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
