import type { Point } from "./points";

export type Span = { readonly from: number; readonly to: number };
export type Box = { readonly width: number; readonly height: number };

export type Spark = {
  /** SVG path of the curve: one piece for each stretch with data. */
  readonly line: string;
  /** Points that stand alone between holes. */
  readonly dots: readonly { readonly x: number; readonly y: number }[];
  /** Height of a value in the box; for threshold lines. */
  readonly y: (value: number) => number;
};

/**
 * Draws points into a box with the time from left to right. The value axis begins
 * at zero (or below, for negative values), so that a ripple does not look like a
 * wave, and takes in the values of `include`, such as a limit or other curves.
 */
export function spark(
  points: readonly Point[],
  span: Span,
  box: Box,
  { inset = 2, include = [] }: { inset?: number; include?: readonly number[] } = {},
): Spark {
  const values = points.flatMap(({ value }) => (value === null ? [] : [value])).concat(include);
  const low = Math.min(0, ...values);
  const high = Math.max(...values, low);
  const inner = box.height - 2 * inset;
  const y = (value: number) =>
    round(high === low ? box.height - inset : inset + ((high - value) / (high - low)) * inner);
  const width = span.to - span.from;
  const x = (at: number) => round(width > 0 ? ((at - span.from) / width) * box.width : 0);

  let line = "";
  const dots: { x: number; y: number }[] = [];
  for (const piece of pieces(points)) {
    const drawn = piece.map(({ at, value }) => ({ x: x(at), y: y(value) }));
    const [only] = drawn;
    if (drawn.length === 1 && only) dots.push(only);
    else line += drawn.map((p, i) => `${i === 0 ? "M" : "L"}${p.x} ${p.y}`).join("");
  }
  return { line, dots, y };
}

type Valued = { readonly at: number; readonly value: number };

/** Stretches without a hole. */
function pieces(points: readonly Point[]): Valued[][] {
  const out: Valued[][] = [];
  let piece: Valued[] = [];
  for (const { at, value } of points) {
    if (value !== null) {
      piece.push({ at, value });
      continue;
    }
    if (piece.length > 0) out.push(piece);
    piece = [];
  }
  if (piece.length > 0) out.push(piece);
  return out;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** The time that several curves have together; undefined when none has a point. */
export function commonSpan(curves: readonly (readonly Point[])[]): Span | undefined {
  const times = curves.flatMap((points) => points.map(({ at }) => at));
  if (times.length === 0) return undefined;
  return { from: Math.min(...times), to: Math.max(...times) };
}

/** Lowest, highest and last value; undefined when there is none. */
export function extremes(
  points: readonly Point[],
): { low: number; high: number; last: number } | undefined {
  const values = points.flatMap(({ value }) => (value === null ? [] : [value]));
  const last = values.at(-1);
  if (last === undefined) return undefined;
  return { low: Math.min(...values), high: Math.max(...values), last };
}
