import type { Change, Freeze, Incident } from "../../api/types";
import { span } from "../../format/duration";
import {
  apartText,
  bandOf,
  type Catalogue,
  holds,
  nameOf,
  nearOf,
  relationOf,
  relationText,
  type Span,
  windowOf,
} from "./guard";

export type WhyTone = "good" | "warning" | "bad" | "neutral";

/** One reason in words, with what it is about. */
export type Why = {
  tone: WhyTone;
  text: string;
  /** What the text is about, to be opened. */
  change?: Change;
  incident?: Incident;
};

export type Surroundings = {
  /** Changes that were or may be in the way. */
  others: Change[];
  freezes: Freeze[];
  incidents: Incident[];
  catalogue: Catalogue;
  now: number;
};

export type Explained = { headline: string; tone: WhyTone; reasons: Why[] };

/** Why a change stands as it does: the calendar's rule in the words of this change. */
export function explain(change: Change, around: Surroundings): Explained {
  const reasons = [...blockerReasons(change, around), ...denials(change, around)];
  return { ...headline(change, around, reasons), reasons };
}

function headline(
  change: Change,
  { catalogue, now }: Surroundings,
  reasons: Why[],
): Omit<Explained, "reasons"> {
  const band = span(bandOf(catalogue, change.environment));
  if (change.kind === "rollback" || change.kind === "emergency_action") {
    const what = change.kind === "rollback" ? "A rollback" : "An emergency action";
    return {
      tone: "neutral",
      headline: `${what} is never held back. It stands here so that others see it.`,
    };
  }
  switch (change.status) {
    case "held":
      return change.confirm_by && Date.parse(change.confirm_by) <= now
        ? { tone: "neutral", headline: "It was held for a decision, and nobody decided in time." }
        : {
            tone: "warning",
            headline: `It waits for another person's decision: ${
              reasons.length > 0
                ? `something is closer than the ${band} that ${change.environment} keeps between changes.`
                : "something was in the way when it asked."
            }`,
          };
    case "rejected":
      return { tone: "bad", headline: `${change.decided_by ?? "An approver"} rejected it.` };
    case "expired":
      return {
        tone: "neutral",
        headline:
          change.confirm_by && !change.decided_by
            ? "Nobody decided in time, so it has lapsed."
            : "It was allowed but did not start in time, so its window is free again.",
      };
    case "cancelled":
      return { tone: "neutral", headline: "It was cancelled, so its window is free again." };
    default:
      if (change.decided_by) {
        return {
          tone: "good",
          headline: `${change.decided_by} confirmed it although others are near.`,
        };
      }
      return {
        tone: "good",
        headline: `It was allowed: when it asked, no other change of its neighbourhood was closer than ${band}.`,
      };
  }
}

/** What it was held for, and whether that is still in the way; else what came near it since. */
function blockerReasons(change: Change, around: Surroundings): Why[] {
  const { others, catalogue, now } = around;
  const asked = change.blockers ?? [];
  const near = nearOf(change, others, catalogue, now);
  const ids = new Set([...asked, ...near.map(({ change: { id } }) => id)]);
  const reasons: Why[] = [];
  for (const id of ids) {
    const other = others.find((one) => one.id === id);
    if (!other) continue;
    const inTheWay = near.some((one) => one.change.id === id);
    const since = asked.includes(id) ? "" : " It was not there when this one asked.";
    reasons.push({
      tone: inTheWay ? "warning" : "neutral",
      text: `${distanceText(windowOf(change, now), change, other, catalogue, now)}${
        inTheWay ? since : ` ${noLonger(other, now)}`
      }`,
      change: other,
    });
  }
  return reasons;
}

/** "1 h 12 min after deploy of llm ends (chat depends on llm); the guard band of prod is 2 h." */
export function distanceText(
  own: Span,
  place: Pick<Change, "service" | "environment">,
  other: Change,
  catalogue: Catalogue,
  now: number,
): string {
  const relation = relationOf(catalogue, place.environment, place.service, other.service);
  const how = relation ? ` (${relationText(relation, place.service, other.service)})` : "";
  const apart = apartText(own, windowOf(other, now), nameOf(other));
  const band = span(bandOf(catalogue, place.environment));
  return `${capital(apart)}${how}; the guard band of ${place.environment} is ${band}.`;
}

function noLonger(other: Change, now: number): string {
  return holds(other, now)
    ? "It is no longer that close."
    : `It is no longer in the way: ${other.status.replaceAll("_", " ")}.`;
}

/** Freezes and critical incidents that would deny it if it asked now; only while it may still start. */
function denials(change: Change, around: Surroundings): Why[] {
  if (change.status !== "held" && change.status !== "claimed") return [];
  if (change.kind === "rollback" || change.kind === "emergency_action") return [];
  const reasons: Why[] = [];
  for (const freeze of around.freezes) {
    if (freezeMeets(freeze, change)) {
      reasons.push({
        tone: "bad",
        text: `A freeze denies it: “${freeze.reason}” (${freeze.created_by}).`,
      });
    }
  }
  for (const incident of criticalNear(change, around.incidents, around.catalogue)) {
    reasons.push({
      tone: "bad",
      text: `Incident #${incident.number} on ${incident.service || incident.environment} is critical: until it is resolved only rollbacks and emergency actions go on.`,
      incident,
    });
  }
  return reasons;
}

/** Whether a freeze denies a change: AND across its fields, OR inside one; half-open in time. */
export function freezeMeets(
  freeze: Freeze,
  change: Pick<Change, "service" | "environment" | "kind" | "start" | "end">,
): boolean {
  const any = (list: string[] | undefined, name: string) => !list?.length || list.includes(name);
  if (!any(freeze.services, change.service)) return false;
  if (!any(freeze.environments, change.environment)) return false;
  if (!any(freeze.kinds, change.kind)) return false;
  const [from, until] = [Date.parse(freeze.start), freeze.end ? Date.parse(freeze.end) : Infinity];
  const [start, end] = [Date.parse(change.start), Date.parse(change.end)];
  return start < until && (from < end || from <= start);
}

/** Open critical incidents in the neighbourhood. One that names only an environment freezes all of it. */
export function criticalNear(
  change: Pick<Change, "service" | "environment">,
  incidents: Incident[],
  catalogue: Catalogue,
): Incident[] {
  return incidents.filter((incident) => {
    if (incident.severity !== "critical" || incident.status === "resolved") return false;
    if (incident.environment && incident.environment !== change.environment) return false;
    if (!incident.service) return Boolean(incident.environment);
    return (
      relationOf(catalogue, change.environment, change.service, incident.service) !== undefined
    );
  });
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
