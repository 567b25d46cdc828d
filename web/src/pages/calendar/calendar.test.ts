import { describe, expect, it } from "vitest";
import type { Change, Freeze } from "../../api/types";
import type { Catalogue, Span } from "../changes/guard";
import {
  type Answered,
  askedSpan,
  localInput,
  neighbourhoodText,
  previewRequest,
  withLocalTimes,
} from "./ask";
import { neighbour } from "./DayView";
import { boundsOf, dayOf, isDay, minuteOn, shiftDay, ticksOf } from "./day";
import { agendaOf } from "./entries";
import { effectText, type FreezeDraft, freezeError, freezeOf } from "./freezeDraft";
import { groupsOf } from "./groups";
import { freezesOn, lanesOf, pack } from "./lanes";
import { calendarSearch } from "./search";

const hour = 60 * 60_000;
const catalogue: Catalogue = {
  services: [
    { name: "chat", depends_on: ["llm"] },
    { name: "llm" },
    { name: "shop", depends_on: ["chat"] },
  ],
  environments: [{ name: "prod", guard_band: "2h0m0s", scope: "neighbourhood" }],
};
const day = boundsOf("2026-11-30");
const noon = day.start + 12 * hour;

function change(id: string, start: number, length = hour / 2, over: Partial<Change> = {}): Change {
  return {
    id,
    service: "chat",
    environment: "prod",
    kind: "deploy",
    status: "claimed",
    start: new Date(start).toISOString(),
    end: new Date(start + length).toISOString(),
    run_id: id,
    created_at: new Date(start).toISOString(),
    ...over,
  };
}

describe("packing into rows", () => {
  it("never lets two spans of a row overlap, and takes no more rows than overlap at once", () => {
    let state = 11;
    const random = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((state / 2_147_483_648) * below);
    };
    for (let round = 0; round < 300; round++) {
      const spans: Span[] = Array.from({ length: 1 + random(20) }, () => {
        const start = random(100);
        return { start, end: start + 1 + random(30) };
      });
      const rows = pack(spans);
      const together = (a: Span, b: Span) => a.start < b.end && b.start < a.end;
      spans.forEach((a, i) => {
        spans.forEach((b, j) => {
          if (i < j && rows[i] === rows[j]) expect(together(a, b)).toBe(false);
        });
      });
      const depth = Math.max(
        ...spans.map(({ start }) => spans.filter((s) => s.start <= start && start < s.end).length),
      );
      expect(Math.max(...rows) + 1).toBe(depth);
    }
  });

  it("of nothing is nothing", () => {
    expect(pack([])).toEqual([]);
  });
});

describe("the lanes of a day", () => {
  it("are one for each service and environment, with guard bands where one is kept", () => {
    const lanes = lanesOf(
      [
        change("a", noon),
        change("b", noon, hour, { service: "llm", status: "held" }),
        change("c", noon + hour, hour, { status: "rejected" }),
      ],
      [],
      catalogue,
      day,
      noon,
    );
    expect(lanes.map(({ key }) => key)).toEqual(["prod/chat", "prod/llm"]);
    const [chat, llm] = lanes;
    expect(chat?.blocks.map(({ change: { id }, row }) => [id, row])).toEqual([
      ["a", 0],
      ["c", 1],
    ]);
    expect(chat?.rows).toBe(2);
    expect(chat?.blocks[0]?.guarded).toEqual({ start: noon - 2 * hour, end: noon + 2.5 * hour });
    expect(chat?.blocks[0]?.window.start).toBeCloseTo(0.5);
    expect(llm?.blocks[0]?.guarded).toBeUndefined();
  });

  it("show what ended yesterday while its guard band reaches into today", () => {
    const ids = (start: number) =>
      lanesOf([change("x", start)], [], catalogue, day, noon).flatMap(({ blocks }) => blocks);
    expect(ids(day.start - 2 * hour)).toHaveLength(1);
    expect(ids(day.start - 2.5 * hour)).toHaveLength(0);
    expect(ids(day.end + 2 * hour)).toHaveLength(0);
  });

  it("turn the text around before the edge of the day", () => {
    const side = (start: number) =>
      lanesOf([change("x", start)], [], catalogue, day, noon)[0]?.blocks[0]?.text;
    expect(side(noon)).toBe("right");
    expect(side(day.end - hour)).toBe("left");
  });

  it("are frozen where a freeze names them", () => {
    const freeze = { id: "f", start: new Date(noon).toISOString(), services: ["llm"] } as Freeze;
    expect(freezesOn({ service: "chat" }, [freeze], day)).toEqual([]);
    expect(freezesOn({}, [freeze], day)).toHaveLength(1);
    const [bar] = freezesOn({ service: "llm" }, [freeze], day);
    expect(bar?.span).toEqual({ start: 0.5, end: 1 });
  });
});

describe("the agenda", () => {
  it("tells changes, freezes and the present time in their order", () => {
    const freeze = { id: "f", start: new Date(noon - hour).toISOString() } as Freeze;
    const lanes = lanesOf([change("a", noon + hour)], [freeze], catalogue, day, noon);
    const entries = agendaOf(lanes, freezesOn({}, [freeze], day), day, noon);
    expect(entries.map(({ key }) => key)).toEqual(["f", "now", "a"]);
    expect(agendaOf(lanes, [], boundsOf("2026-11-29"), noon).map(({ key }) => key)).toEqual(["a"]);
  });
});

describe("a day", () => {
  it("is local, and 23 or 25 hours long when the clocks change", () => {
    const hours = (text: string) => (boundsOf(text).end - boundsOf(text).start) / hour;
    expect([hours("2026-11-30"), hours("2026-03-29"), hours("2026-10-25")]).toEqual([24, 23, 25]);
    expect(ticksOf(boundsOf("2026-03-29"), 1).map(({ local }) => local)).not.toContain("02:00");
    expect(ticksOf(boundsOf("2026-11-30"), 6)).toEqual([
      { at: day.start, local: "00:00", utc: "23:00" },
      { at: day.start + 6 * hour, local: "06:00", utc: "05:00" },
      { at: day.start + 12 * hour, local: "12:00", utc: "11:00" },
      { at: day.start + 18 * hour, local: "18:00", utc: "17:00" },
    ]);
  });

  it("is found again, whatever is added to it and taken away", () => {
    for (let days = -400; days <= 400; days += 7) {
      const moved = shiftDay("2026-11-30", days);
      expect(isDay(moved)).toBe(true);
      expect(shiftDay(moved, -days)).toBe("2026-11-30");
      expect(dayOf(boundsOf(moved).start)).toBe(moved);
    }
    for (const bad of ["2026-02-30", "2026-13-01", "today", "", 20261130, undefined]) {
      expect(isDay(bad)).toBe(false);
    }
  });

  it("is named with times that lie outside of it", () => {
    expect(minuteOn(day, noon)).toBe("12:00");
    expect(minuteOn(day, day.end + hour)).toBe("Tue 1 Dec 01:00");
  });
});

describe("the address", () => {
  it("keeps what makes sense", () => {
    const search = { day: "2026-11-30", view: "list", service: "chat", change: "c1" };
    expect(calendarSearch({ ...search, environment: "", other: 1 })).toEqual(search);
    expect(calendarSearch({ day: "yesterday", view: "day", service: 7 })).toEqual({});
  });
});

describe("the list", () => {
  it("leaves empty groups out and ends with what is over", () => {
    const groups = groupsOf(
      [
        change("old", noon - 6 * hour, hour, { status: "succeeded" }),
        change("now", noon - 1, hour),
        change("held", noon, hour, { status: "held" }),
      ],
      noon,
    );
    expect(groups.map(({ title, items }) => [title, items.map(({ id }) => id)])).toEqual([
      ["Waiting for a decision", ["held"]],
      ["Now", ["now"]],
      ["Over", ["old"]],
    ]);
  });
});

describe("arrow keys", () => {
  const blocks = [
    { lane: "a", at: 0.1 },
    { lane: "a", at: 0.6 },
    { lane: "b", at: 0.2 },
    { lane: "b", at: 0.9 },
  ];

  it.each([
    [0, "ArrowRight", 1],
    [1, "ArrowRight", undefined],
    [1, "ArrowLeft", 0],
    [0, "ArrowDown", 2],
    [1, "ArrowDown", 3],
    [3, "ArrowUp", 1],
    [0, "ArrowUp", undefined],
    [0, "Tab", undefined],
  ])("from %i, %s leads to %s", (from, key, to) => {
    expect(neighbour(blocks, from, key)).toBe(to);
  });
});

describe("a question to the calendar", () => {
  const wanted = {
    service: "chat",
    environment: "prod",
    kind: "deploy",
    duration: "1h",
    start: "",
  } as const;

  it("has a run of its own, and no start when it means now", () => {
    const request = previewRequest(wanted);
    expect(request.run_id).toMatch(/^console-preview-[0-9a-f-]{36}$/);
    expect(previewRequest(wanted).run_id).not.toBe(request.run_id);
    expect(request).not.toHaveProperty("start");
    const later = previewRequest({ ...wanted, start: "2026-11-30T12:00" });
    expect(later.start).toBe("2026-11-30T11:00:00.000Z");
  });

  it("is about the window that was asked for", () => {
    const asked = { wanted, start: "2026-11-30T11:00:00Z" } as Answered;
    expect(askedSpan(asked)).toEqual({ start: noon, end: noon + hour });
  });

  it("offers the next free time in whole minutes, not too early", () => {
    expect(localInput("2026-11-30T11:00:00Z")).toBe("2026-11-30T12:00");
    expect(localInput("2026-11-30T11:00:00.001Z")).toBe("2026-11-30T12:01");
  });

  it("gives the server's times in local time", () => {
    expect(withLocalTimes("critical since 2026-11-30T10:38:26.892669Z; only", noon)).toBe(
      "critical since 11:38:26; only",
    );
    expect(withLocalTimes("until 2026-12-01T10:38:26Z", noon)).toBe("until Tue 1 Dec 11:38");
  });

  it("says whose changes count", () => {
    expect(neighbourhoodText(catalogue, wanted)).toBe(
      "changes of chat itself, what it depends on (llm), what uses it (shop)",
    );
  });
});

describe("a new freeze", () => {
  const draft: FreezeDraft = {
    reason: " peak ",
    services: [],
    environments: ["prod"],
    kinds: [],
    start: "",
    end: "",
  };

  it("is sent without the lists that mean all", () => {
    expect(freezeOf(draft, noon)).toEqual({
      reason: "peak",
      environments: ["prod"],
      start: "2026-11-30T11:00:00.000Z",
    });
  });

  it.each([
    [{ reason: " " }, "A reason is needed."],
    [{ end: "2026-11-30T11:59" }, "This is over already."],
    [{ start: "2026-11-30T14:00", end: "2026-11-30T13:00" }, "It ends before it begins."],
    [{ end: "2026-11-30T13:00" }, undefined],
  ])("with %j: %s", (over, wrong) => {
    expect(freezeError({ ...draft, ...over }, noon)).toBe(wrong);
  });

  it("says what it will deny", () => {
    const active = [
      change("claimed", noon + hour),
      change("running", noon, hour, { status: "running" }),
      change("back", noon, hour, { kind: "rollback" }),
    ];
    const text = effectText(draft, active, noon);
    expect(text).toContain("every service in prod");
    expect(text).toContain("1 registered change will be denied when starting: chat in prod.");
    expect(effectText({ ...draft, services: ["llm"] }, active, noon)).toContain("No change");
  });
});
