import type { Incident, Severity } from "../../api/types";

/** The worst first. */
export const severityOrder: readonly Severity[] = ["critical", "error", "warning", "info"];

/** Incidents by severity, then the newest first. */
export function worstFirst(incidents: Incident[]): Incident[] {
  const rank = (incident: Incident) => severityOrder.indexOf(incident.severity);
  return [...incidents].sort((a, b) => rank(a) - rank(b) || b.number - a.number);
}

/** The severity of this name, or undefined when it is none. */
export function severityOf(name: unknown): Severity | undefined {
  return severityOrder.find((severity) => severity === name);
}
