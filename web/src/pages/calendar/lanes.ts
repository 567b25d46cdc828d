import type { Change, Freeze } from "../../api/types";
import { bandOf, type Catalogue, holds, type Span, windowOf } from "../changes/guard";

/** A change on the time axis; places are shares 0-1 of the day, cut at its ends. */
export type Block = {
  change: Change;
  row: number;
  /** When it keeps others away, in ms; undefined where it keeps nobody away. */
  guarded: Span | undefined;
  window: Span;
  /** The window with its guard band; the window itself where it keeps none. */
  guard: Span;
  /** The room the block takes with its text. */
  room: Span;
  /** Which way the text runs from the window. */
  text: "right" | "left";
};

export type Lane = {
  key: string;
  service: string;
  environment: string;
  rows: number;
  blocks: Block[];
  freezes: FreezeBar[];
};

/** A freeze on the time axis, as shares 0-1 of the day. */
export type FreezeBar = { freeze: Freeze; span: Span };

// The text of a block is as wide as this share of a day, whatever its window's length.
const textShare = 0.21;

/** One lane per service and environment, with what overlaps put in rows below each other. */
export function lanesOf(
  changes: Change[],
  freezes: Freeze[],
  catalogue: Catalogue,
  day: Span,
  now: number,
): Lane[] {
  const lanes = new Map<string, Lane>();
  for (const change of changes) {
    const block = blockOf(change, catalogue, day, now);
    if (!block) continue;
    const { service, environment } = change;
    const key = `${environment}/${service}`;
    const lane = lanes.get(key) ?? { key, service, environment, rows: 0, blocks: [], freezes: [] };
    lane.blocks.push(block);
    lanes.set(key, lane);
  }
  const sorted = [...lanes.values()].sort(
    (a, b) => a.environment.localeCompare(b.environment) || a.service.localeCompare(b.service),
  );
  for (const lane of sorted) {
    lane.blocks.sort((a, b) => a.window.start - b.window.start);
    const rows = pack(lane.blocks.map(({ room }) => room));
    lane.blocks.forEach((block, index) => {
      block.row = rows[index] ?? 0;
    });
    lane.rows = Math.max(...rows) + 1;
    lane.freezes = freezesOn(lane, freezes, day);
  }
  return sorted;
}

/** A change as a block of a day; undefined when not even its guard band reaches into it. */
function blockOf(change: Change, catalogue: Catalogue, day: Span, now: number): Block | undefined {
  const own = windowOf(change, now);
  const band = holds(change, now) ? bandOf(catalogue, change.environment) : 0;
  const guarded = { start: own.start - band, end: own.end + band };
  if (guarded.start >= day.end || guarded.end <= day.start) return undefined;
  const window = share(own, day);
  const guard = share(guarded, day);
  const text = window.start + textShare > 1 ? "left" : "right";
  const room =
    text === "right"
      ? { start: guard.start, end: Math.max(guard.end, window.start + textShare) }
      : { start: Math.min(guard.start, Math.max(0, window.end - textShare)), end: guard.end };
  return { change, row: 0, guarded: band > 0 ? guarded : undefined, window, guard, room, text };
}

/** A span as shares of the day, cut at its ends. */
export function share(span: Span, day: Span): Span {
  const length = day.end - day.start;
  const place = (at: number) => Math.min(1, Math.max(0, (at - day.start) / length));
  return { start: place(span.start), end: place(span.end) };
}

/**
 * A row for each span, so that no two spans of a row overlap, with as few rows
 * as can be. Spans are half-open and come sorted or not.
 */
export function pack(spans: Span[]): number[] {
  const order = spans
    .map((span, index) => ({ span, index }))
    .sort((a, b) => a.span.start - b.span.start || a.index - b.index);
  const ends: number[] = [];
  const rows = new Array<number>(spans.length).fill(0);
  for (const { span, index } of order) {
    const free = ends.findIndex((end) => end <= span.start);
    const row = free < 0 ? ends.length : free;
    ends[row] = span.end;
    rows[index] = row;
  }
  return rows;
}

/** The freezes that reach into a day, of a service and an environment where they are given. */
export function freezesOn(
  where: { service?: string | undefined; environment?: string | undefined },
  freezes: Freeze[],
  day: Span,
): FreezeBar[] {
  const any = (list: string[] | undefined, name: string | undefined) =>
    !name || !list?.length || list.includes(name);
  return freezes
    .filter((freeze) => any(freeze.services, where.service))
    .filter((freeze) => any(freeze.environments, where.environment))
    .map((freeze) => ({ freeze, span: share(freezeSpan(freeze), day) }))
    .filter(({ span }) => span.end > span.start);
}

/** When a freeze holds; without an end it holds for ever. */
export function freezeSpan(freeze: Freeze): Span {
  return {
    start: Date.parse(freeze.start),
    end: freeze.end ? Date.parse(freeze.end) : Number.MAX_SAFE_INTEGER,
  };
}
