import { describe, expect, it } from "vitest";
import type { ActionRun, Alert, Change, MetricSeries } from "../api/types";
import { hasData, namesOf, summarize, toColumns, valueRange } from "./columns";
import { marksOf, neighbourhood } from "./marks";
import { withHoles } from "./points";
import { askFor, type ChartRange, incidentRange, stepFor } from "./range";
import { commonSpan, extremes, spark } from "./sparkline";

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const min = 60_000;
const points = (...values: [number, number | null][]) =>
  values.map(([seconds, value]) => ({ at: at(seconds), value }));

describe("the points of a curve", () => {
  it("have a hole where times are missing", () => {
    expect(withHoles(points([0, 1], [10, 2], [20, 3], [60, 4], [70, 5]))).toEqual([
      { at: 0, value: 1 },
      { at: 10_000, value: 2 },
      { at: 20_000, value: 3 },
      { at: 30_000, value: null },
      { at: 60_000, value: 4 },
      { at: 70_000, value: 5 },
    ]);
  });

  it("keep null, and take what is no number for it", () => {
    const values = withHoles(points([0, 1], [10, null], [20, Number.NaN])).map((p) => p.value);
    expect(values).toEqual([1, null, null]);
  });
});

describe("a sparkline", () => {
  const box = { width: 100, height: 20 };
  const span = { from: 0, to: 100 };

  it("breaks its line at a hole and draws a lone point as a dot", () => {
    const drawn = spark(
      [
        { at: 0, value: 0 },
        { at: 50, value: 10 },
        { at: 60, value: null },
        { at: 80, value: 5 },
        { at: 90, value: null },
        { at: 100, value: null },
      ],
      span,
      box,
      { inset: 0 },
    );
    expect(drawn.line).toBe("M0 20L50 0");
    expect(drawn.dots).toEqual([{ x: 80, y: 10 }]);
  });

  it("begins at zero, so that a ripple is no wave", () => {
    const drawn = spark(
      [
        { at: 0, value: 100 },
        { at: 100, value: 98 },
      ],
      span,
      box,
      { inset: 0 },
    );
    expect(drawn.line).toBe("M0 0L100 0.4");
  });

  it("takes in a limit that lies above", () => {
    const half = [0, 100].map((time) => ({ at: time, value: 5 }));
    const drawn = spark(half, span, box, { inset: 0, include: [20] });
    expect(drawn.line).toBe("M0 15L100 15");
    expect(drawn.y(20)).toBe(0);
  });

  it("lies at the bottom when everything is zero", () => {
    const zero = [0, 100].map((time) => ({ at: time, value: 0 }));
    expect(spark(zero, span, box, { inset: 0 }).line).toBe("M0 20L100 20");
  });

  it("shares its time with its neighbours and has none without points", () => {
    expect(commonSpan([[{ at: 5, value: 1 }], [{ at: 9, value: null }]])).toEqual({
      from: 5,
      to: 9,
    });
    expect(commonSpan([[], []])).toBeUndefined();
    expect(extremes([{ at: 0, value: null }])).toBeUndefined();
  });
});

describe("the range of an incident", () => {
  const opened = Date.parse("2026-11-30T06:00:02Z");

  it("reaches from 15 minutes before until now, on multiples of the step", () => {
    const range = incidentRange(opened, undefined, opened + 10 * min, 800);
    expect(range.stepMs).toBe(5_000);
    expect(range.open).toBe(true);
    expect(at(range.start / 1000)).toBe("2026-11-30T05:45:00.000Z");
    expect(at(range.end / 1000)).toBe("2026-11-30T06:10:00.000Z");
  });

  it("ends 15 minutes after it was resolved", () => {
    const range = incidentRange(opened, opened + 30 * min, opened + 24 * 60 * min, 800);
    expect(range.open).toBe(false);
    expect(range.end).toBe(Math.floor((opened + 45 * min) / range.stepMs) * range.stepMs);
    expect(askFor(range).end).toBe(at(range.end / 1000));
    expect(askFor({ ...range, open: true }).end).toBeUndefined();
  });

  it("never asks for more points than the width shows", () => {
    for (const span of [20 * min, 6 * 60 * min, 3 * 24 * 60 * min, 90 * 24 * 60 * min]) {
      for (const width of [300, 800, 1400]) {
        expect(span / stepFor(span, width)).toBeLessThanOrEqual(width / 2);
      }
    }
  });
});

const range: ChartRange = { start: 0, end: 40_000, stepMs: 10_000, open: true };
const series = (labels: Record<string, string>, ...values: [number, number | null][]) =>
  ({ labels, points: points(...values) }) as MetricSeries;

describe("columns", () => {
  it("have null where there is no sample or no number", () => {
    const columns = toColumns([series({}, [0, 1], [10, 2], [30, null], [40, 5])], range);
    expect(columns.times).toEqual([0, 10, 20, 30, 40]);
    expect(columns.values).toEqual([[1, 2, null, null, 5]]);
    expect(columns.names).toEqual([""]);
  });

  it("leave out what lies outside of the range", () => {
    const columns = toColumns([series({}, [-10, 1], [50, 2])], range);
    expect(hasData(columns)).toBe(false);
  });

  it("keep the series that reach highest when there are too many", () => {
    const many = Array.from({ length: 12 }, (_, i) => series({ pod: `p${i}` }, [0, i]));
    const { values, names } = toColumns(many, range);
    expect(values).toHaveLength(8);
    expect(names[0]).toBe("p11");
  });

  it("name series by the labels that tell them apart", () => {
    expect(
      namesOf([
        { labels: { service: "chat", source: "allocator" } },
        { labels: { service: "chat", source: "engine-kv" } },
        { labels: { service: "chat" } },
      ]),
    ).toEqual(["allocator", "engine-kv", "no source"]);
  });

  it("are told in four figures; a curve that ended has no last value", () => {
    const columns = toColumns([series({}, [0, 1], [10, 3], [20, 9])], {
      ...range,
      end: 90_000,
    });
    expect(summarize(columns, 15_000)).toEqual({
      before: 3,
      lowest: 1,
      highest: 9,
      last: undefined,
    });
    const until = toColumns([series({}, [30, 4])], range);
    expect(summarize(until, 0).last).toBe(4);
    expect(summarize(toColumns([], range), 0)).toEqual({
      before: undefined,
      lowest: undefined,
      highest: undefined,
      last: undefined,
    });
  });

  it("take in a threshold that is near, not one that would flatten the curve", () => {
    expect(valueRange(1, 10, [12])[1]).toBeCloseTo(12 * 1.08);
    expect(valueRange(1, 10, [100])[1]).toBeCloseTo(10 * 1.08);
    expect(valueRange(0, 0, [])).toEqual([0, 1]);
    expect(valueRange(0, 0, [0.05])[1]).toBeCloseTo(0.054);
    expect(valueRange(null, null, [5])[1]).toBeCloseTo(5.4);
  });
});

describe("marks", () => {
  const alert = (name: string, start: number, end?: number) =>
    ({
      labels: { alertname: name },
      starts_at: at(start),
      status: end === undefined ? "firing" : "resolved",
      ...(end !== undefined && { ends_at: at(end) }),
    }) as unknown as Alert;
  const run = (id: string, enforced?: number, ended?: number) =>
    ({
      id,
      title: "Set rate limit",
      summary: "",
      ...(enforced !== undefined && { enforced_at: at(enforced) }),
      ...(ended !== undefined && { ended_at: at(ended) }),
    }) as ActionRun;
  const change = (id: string, status: Change["status"], more: Partial<Change> = {}) =>
    ({
      id,
      service: "chat",
      kind: "config_change",
      status,
      start: at(5),
      end: at(25),
      ...more,
    }) as unknown as Change;

  it("join alerts that began together", () => {
    const marks = marksOf({ alerts: [alert("A", 10), alert("B", 11, 30)], runs: [] }, [], range);
    expect(marks.map(({ text, from }) => [text, from])).toEqual([
      ["A, B fires", 10_000],
      ["B ends", 30_000],
    ]);
  });

  it("are bands of what was enforced; what never was is none", () => {
    const detail = { alerts: [], runs: [run("r1", 10), run("r2", 10, 20), run("r3")] };
    expect(marksOf(detail, [], range).map(({ id, to, open }) => [id, to, open])).toEqual([
      ["run r1", 40_000, true],
      ["run r2", 20_000, false],
    ]);
  });

  it("show changes that happened, once each", () => {
    const changes = [
      change("c1", "succeeded", { finished_at: at(15) }),
      change("c2", "running"),
      change("c3", "rejected"),
      change("c4", "claimed"),
      change("c5", "succeeded", { action_run: "r1" }),
      change("c6", "succeeded", { start: at(-50), end: at(-20) }),
    ];
    const marks = marksOf({ alerts: [], runs: [run("r1", 10)] }, changes, range);
    expect(marks.map(({ id, to }) => [id, to])).toEqual([
      ["change c1", 15_000],
      ["change c2", 40_000],
      ["run r1", 40_000],
    ]);
    expect(marks[0]?.text).toBe("config change of chat");
  });

  it("look one hop around a service", () => {
    const services = [
      { name: "checkout", depends_on: ["assistant"] },
      { name: "assistant", depends_on: ["llm"] },
      { name: "llm" },
      { name: "newsletter", depends_on: ["checkout"] },
    ];
    expect([...neighbourhood(services, "assistant")].sort()).toEqual([
      "assistant",
      "checkout",
      "llm",
    ]);
  });
});
