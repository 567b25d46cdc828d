import type { Change, Gateway, Incident } from "../../api/types";
import { plural } from "../../format/number";
import type { Tone } from "../../ui/Tag";

/** One figure at the top of the overview. */
export type Fact = { value: string; note: string; tone: Tone };

const unknown: Fact = { value: "–", note: "no data", tone: "neutral" };

export function incidentFact(incidents: Incident[] | undefined, more: boolean): Fact {
  if (!incidents) return unknown;
  if (incidents.length === 0) return { value: "0", note: "nothing is open", tone: "good" };
  const untaken = incidents.filter((incident) => incident.status === "open").length;
  const critical = incidents.some((incident) => incident.severity === "critical");
  return {
    value: `${incidents.length}${more ? "+" : ""}`,
    note: untaken > 0 ? `${untaken} not acknowledged` : "all acknowledged",
    tone: critical ? "critical" : "bad",
  };
}

export function gatewayFact(gateways: Gateway[] | undefined): Fact {
  if (!gateways) return unknown;
  if (gateways.length === 0) return { value: "0", note: "none has connected", tone: "warning" };
  const current = gateways.filter((gateway) => gateway.state === "live").length;
  const value = `${current}/${gateways.length}`;
  if (current === gateways.length) return { value, note: "hold the newest revision", tone: "good" };
  const worst = (["stale", "rejected", "behind"] as const)
    .map((state) => ({ state, n: gateways.filter((gateway) => gateway.state === state).length }))
    .filter(({ n }) => n > 0);
  return {
    value,
    note: worst.map(({ state, n }) => `${n} ${state}`).join(", "),
    tone: worst.some(({ state }) => state !== "behind") ? "bad" : "warning",
  };
}

export function changeFact(changes: Change[] | undefined): Fact {
  if (!changes) return unknown;
  const held = changes.filter((change) => change.status === "held").length;
  return {
    value: String(changes.length),
    note:
      held > 0 ? `${plural(held, "waits", "wait")} for a decision` : "none waits for a decision",
    tone: held > 0 ? "warning" : "good",
  };
}
