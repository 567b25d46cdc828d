import type { Span } from "../changes/guard";

const hourMs = 60 * 60_000;

/** "2026-11-30", the local day of a time. */
export function dayOf(at: number): string {
  const date = new Date(at);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Whether a text names a day that exists. */
export function isDay(text: unknown): text is string {
  if (typeof text !== "string" || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  return dayOf(midnight(text)) === text;
}

/** From midnight to midnight in local time; 23 or 25 hours when the clocks change. */
export function boundsOf(day: string): Span {
  return { start: midnight(day), end: midnight(day, 1) };
}

/** The day that is so many days later; earlier when negative. */
export function shiftDay(day: string, days: number): string {
  return dayOf(midnight(day, days));
}

function midnight(day: string, later = 0): number {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date + later).getTime();
}

const long = new Intl.DateTimeFormat("en-GB", {
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
});

/** "Monday 30 November 2026". */
export function dayTitle(day: string): string {
  return long.format(new Date(midnight(day))).replace(",", "");
}

export type Tick = { at: number; local: string; utc: string };

/** Every so many hours of a day, in local time and UTC. */
export function ticksOf({ start, end }: Span, everyHours: number): Tick[] {
  const ticks: Tick[] = [];
  for (let at = start; at < end; at += hourMs) {
    const date = new Date(at);
    if (date.getHours() % everyHours !== 0) continue;
    ticks.push({ at, local: clock(date.getHours(), date.getMinutes()), utc: utcMinute(date) });
  }
  return ticks;
}

/** "13:30" in UTC. */
export function utcMinute(date: Date): string {
  return clock(date.getUTCHours(), date.getUTCMinutes());
}

/** "14:30" in local time. */
export function localMinuteOf(date: Date): string {
  return clock(date.getHours(), date.getMinutes());
}

function clock(hours: number, minutes: number): string {
  return `${String(hours).padStart(2, "0")}:${String(minutes).padStart(2, "0")}`;
}

/** "14:30", with the day before it where that is another one than the day that is shown. */
export function minuteOn(day: Span, at: number): string {
  const date = new Date(at);
  const inside = day.start <= at && at <= day.end;
  return inside
    ? localMinuteOf(date)
    : `${short.format(date).replace(",", "")} ${localMinuteOf(date)}`;
}

const short = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
});
