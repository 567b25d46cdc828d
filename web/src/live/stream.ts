/** How long the stream may be down before the page says so. */
export const staleAfterMs = 10_000;

/** What is known about the event stream; pure, so that time is an argument. */
export type StreamState = {
  readonly phase: "connecting" | "live" | "down";
  /** When it went down, or when connecting began (ms). */
  readonly since: number;
  /** Whether it was ever open: the first opening misses nothing. */
  readonly opened: boolean;
};

export type StreamEvent =
  | { readonly kind: "open"; readonly at: number }
  | { readonly kind: "error"; readonly at: number };

export function startOfStream(at: number): StreamState {
  return { phase: "connecting", since: at, opened: false };
}

export function nextStream(state: StreamState, event: StreamEvent): StreamState {
  if (event.kind === "open") return { phase: "live", since: event.at, opened: true };
  // Each retry fails again; the first failure is when it went down.
  if (state.phase === "down") return state;
  const since = state.phase === "connecting" ? state.since : event.at;
  return { phase: "down", since, opened: state.opened };
}

export function streamIsStale(state: StreamState, now: number): boolean {
  return state.phase !== "live" && now - state.since > staleAfterMs;
}

/** What a "change" event says: read this again. */
export type Changed = { readonly topic: string; readonly id: string };

/** Reads the data of a "change" event; undefined for anything else. */
export function parseChanged(data: unknown): Changed | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value !== "object" || value === null) return undefined;
    const { topic, id } = value as { topic?: unknown; id?: unknown };
    if (typeof topic !== "string") return undefined;
    return { topic, id: typeof id === "string" ? id : "" };
  } catch {
    return undefined;
  }
}

// An incident shows its runs, and a run's end changes the calendar.
const topicKeys: Record<string, readonly string[]> = {
  incidents: ["incidents"],
  alerts: ["incidents", "signals", "rules"],
  runs: ["runs", "incidents"],
  runbooks: ["runbooks"],
  "runbook-runs": ["runbook-runs", "incidents"],
  changes: ["changes"],
  freezes: ["freezes"],
  gateways: ["gateways"],
  policy: ["gateways", "revisions", "actions"],
  audit: [],
};

/** The first elements of the query keys that a topic makes old. A topic that is not known makes all old. */
export function keysOfTopic(topic: string): readonly string[] | "all" {
  return topicKeys[topic] ?? "all";
}
