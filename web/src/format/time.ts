const time = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const shortTime = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const dayWithYear = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
});

/** "14:32:05" today, "Sat 28 Nov 14:32" this year, "28 Nov 2025 14:32" before; local time. */
export function localTime(at: Date, now: Date): string {
  if (Number.isNaN(at.getTime())) return "unknown time";
  if (sameDay(at, now)) return time.format(at);
  const date = at.getFullYear() === now.getFullYear() ? day.format(at) : dayWithYear.format(at);
  return `${date.replace(",", "")} ${shortTime.format(at)}`;
}

/** "14:32" or, on another day than now, "Sat 28 Nov 14:32"; local time. */
export function localMinute(at: Date, now: Date): string {
  if (Number.isNaN(at.getTime())) return "unknown time";
  return sameDay(at, now) ? shortTime.format(at) : localTime(at, now);
}

/** "2026-11-30 14:32:05 UTC". */
export function utcTime(at: Date): string {
  if (Number.isNaN(at.getTime())) return "unknown time";
  return `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** "14:32:05" of the clock in the header, in UTC. */
export function utcClock(at: Date): string {
  return at.toISOString().slice(11, 19);
}

/** "14:32:05" of the clock in the header, in local time. */
export function localClock(at: Date): string {
  return time.format(at);
}

function sameDay(a: Date, b: Date): boolean {
  return a.toDateString() === b.toDateString();
}
