import type { components } from "../../api/schema.gen";
import type { Change } from "../../api/types";
import { parseDuration, span } from "../../format/duration";
import { words } from "../../ui/tones";

export type Catalogue = components["schemas"]["Catalogue"];

/** What a change is to another one's service; "environment" where every change of it counts. */
export type Relation = "same" | "depends on" | "used by" | "environment";

/** A half-open window in ms. */
export type Span = { start: number; end: number };

/** Another change that is closer than the guard band. */
export type Near = {
  change: Change;
  relation: Relation;
  /** End to start in ms; negative when they overlap. */
  distance: number;
};

// What an environment that names none keeps (server/change, DefaultGuardBand).
const defaultBandMs = 2 * 60 * 60_000;

/** The distance that an environment keeps between two changes, in ms. */
export function bandOf(catalogue: Catalogue, environment: string): number {
  const found = catalogue.environments.find(({ name }) => name === environment);
  return parseDuration(found?.guard_band ?? "") ?? defaultBandMs;
}

/** The longest guard band of all environments, in ms: how far around a day its neighbours reach. */
export function longestBand(catalogue: Catalogue | undefined): number {
  const bands = (catalogue?.environments ?? []).map(({ name }) =>
    bandOf(catalogue as Catalogue, name),
  );
  return Math.max(defaultBandMs, ...bands);
}

/** The window of a change; what still runs is not over. */
export function windowOf(change: Pick<Change, "start" | "end" | "status">, now: number): Span {
  const end = Date.parse(change.end);
  const running = change.status === "running" || change.status === "overrun";
  return {
    start: Date.parse(change.start),
    end: running && !("finished_at" in change && change.finished_at) ? Math.max(end, now) : end,
  };
}

/** From the end of one window to the start of the other, in ms; negative when they overlap. */
export function distance(a: Span, b: Span): number {
  return Math.max(b.start - a.end, a.start - b.end);
}

/** How a service stands to another one in an environment; undefined when neither counts for the other. */
export function relationOf(
  catalogue: Catalogue,
  environment: string,
  service: string,
  other: string,
): Relation | undefined {
  if (service === other) return "same";
  const dependsOn = (name: string) =>
    catalogue.services.find((one) => one.name === name)?.depends_on ?? [];
  if (dependsOn(service).includes(other)) return "depends on";
  if (dependsOn(other).includes(service)) return "used by";
  const scope = catalogue.environments.find(({ name }) => name === environment)?.scope;
  return scope === "environment" ? "environment" : undefined;
}

const holding: ReadonlySet<Change["status"]> = new Set([
  "claimed",
  "running",
  "succeeded",
  "failed",
  "rolled_back",
  "overrun",
]);

/** Whether a change keeps others at a distance: what waits or never happened does not. */
export function holds(change: Change, now: number): boolean {
  if (!holding.has(change.status)) return false;
  if (change.status !== "claimed" || !change.claimed_until) return true;
  return now < Date.parse(change.claimed_until);
}

/** The changes that are closer to a change than its environment's guard band, nearest first. */
export function nearOf(
  change: Change,
  others: Change[],
  catalogue: Catalogue,
  now: number,
): Near[] {
  const band = bandOf(catalogue, change.environment);
  const own = windowOf(change, now);
  const near: Near[] = [];
  for (const other of others) {
    if (other.id === change.id || !holds(other, now)) continue;
    // An emergency action without an environment may be anywhere.
    if (other.environment !== change.environment && other.environment !== "") continue;
    const relation = relationOf(catalogue, change.environment, change.service, other.service);
    const apart = distance(own, windowOf(other, now));
    if (relation && apart < band) near.push({ change: other, relation, distance: apart });
  }
  return near.sort((a, b) => a.distance - b.distance || a.change.id.localeCompare(b.change.id));
}

/** "deploy of llm". */
export function nameOf(change: Pick<Change, "kind" | "service" | "environment">): string {
  return `${words(change.kind)} of ${change.service || change.environment}`;
}

/** "1 h 12 min after deploy of llm ends", "overlaps deploy of llm", "20 min before deploy of llm begins". */
export function apartText(own: Span, other: Span, name: string): string {
  const apart = distance(own, other);
  if (apart < 0) return `overlaps ${name}`;
  const after = own.start >= other.end;
  const far = apart < 1_000 ? "right" : span(apart);
  return after ? `${far} after ${name} ends` : `${far} before ${name} begins`;
}

/** "chat depends on llm", from the side of the change that is explained. */
export function relationText(relation: Relation, service: string, other: string): string {
  switch (relation) {
    case "same":
      return "the same service";
    case "depends on":
      return `${service} depends on ${other}`;
    case "used by":
      return `${service} is used by ${other}`;
    case "environment":
      return "every change of this environment counts";
  }
}
