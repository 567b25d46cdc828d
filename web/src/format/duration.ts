const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** "just now", "42 s ago", "12 min ago", "3 h 5 min ago", "2 d ago"; also "in 12 min". */
export function relative(ms: number): string {
  const size = Math.abs(ms);
  if (size < 5 * second) return "just now";
  return ms < 0 ? `in ${span(size)}` : `${span(size)} ago`;
}

/** A length in its two largest units that matter: "42 s", "12 min", "3 h 5 min", "2 d 4 h". */
export function span(ms: number): string {
  if (ms < minute) return `${Math.floor(ms / second)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min`;
  if (ms < day) return two(Math.floor(ms / hour), "h", Math.floor((ms % hour) / minute), "min");
  return two(Math.floor(ms / day), "d", Math.floor((ms % day) / hour), "h");
}

function two(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** "4:59", "1:04:59", "0:00" once it is over. Rounded up: at 0:00 nothing is left. */
export function countdown(ms: number): string {
  const total = Math.max(0, Math.ceil(ms / second));
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor((total % 3600) / 60);
  const seconds = String(total % 60).padStart(2, "0");
  return hours > 0
    ? `${hours}:${String(minutes).padStart(2, "0")}:${seconds}`
    : `${minutes}:${seconds}`;
}

const unitMs: Record<string, number> = { h: hour, m: minute, s: second, ms: 1 };

/** Reads a duration as the API writes it ("1h30m", "15m0s"), in ms; undefined if it is none. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(h|ms|m|s))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)) {
    total += Number(amount) * (unitMs[unit ?? ""] ?? 0);
  }
  return total;
}

/** Writes whole minutes as the API reads them: "15m", "1h", "1h30m". */
export function durationText(ms: number): string {
  const minutes = Math.round(ms / minute);
  const hours = Math.floor(minutes / 60);
  const rest = minutes % 60;
  if (hours === 0) return `${rest}m`;
  return rest === 0 ? `${hours}h` : `${hours}h${rest}m`;
}
