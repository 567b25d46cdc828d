import type { Change } from "../../api/types";
import type { Tone } from "../../ui/Tag";

const tones: Record<Change["status"], Tone> = {
  held: "warning",
  claimed: "info",
  running: "info",
  succeeded: "good",
  failed: "bad",
  rolled_back: "warning",
  overrun: "bad",
  cancelled: "neutral",
  rejected: "neutral",
  expired: "neutral",
};

/** The tone of a change's window; its text says the same. */
export function toneOf(status: Change["status"]): Tone {
  return tones[status] ?? "neutral";
}
