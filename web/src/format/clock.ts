// Countdowns follow the server's clock: a laptop that is minutes off would show
// leases that never end, or that ended already.

let offsetMs = 0;

// The Date header has whole seconds and took its time to arrive, so a small
// difference says nothing.
const noiseMs = 2_000;

/** Takes the Date header of an answer that arrived at `arrived` (ms). */
export function noteServerDate(header: string | null, arrived: number): void {
  if (!header) return;
  const server = Date.parse(header);
  if (Number.isNaN(server)) return;
  const difference = server + 500 - arrived;
  offsetMs = Math.abs(difference) > noiseMs ? difference : 0;
}

/** Server time minus this machine's, in ms; 0 while they agree within 2 s. */
export function clockOffset(): number {
  return offsetMs;
}

/** Now, in ms, by the server's clock. */
export function serverNow(): number {
  return Date.now() + offsetMs;
}
