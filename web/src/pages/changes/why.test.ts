import { describe, expect, it } from "vitest";
import type { Change, Freeze, Incident } from "../../api/types";
import { apartText, type Catalogue, distance, nearOf, relationOf, type Span } from "./guard";
import { criticalNear, explain, freezeMeets } from "./why";

const catalogue: Catalogue = {
  services: [
    { name: "shop", depends_on: ["chat"] },
    { name: "chat", depends_on: ["llm"] },
    { name: "llm" },
    { name: "mail" },
  ],
  environments: [
    { name: "prod", guard_band: "2h0m0s", scope: "neighbourhood" },
    { name: "strict", guard_band: "30m0s", scope: "environment" },
  ],
};
const noon = Date.parse("2026-11-30T12:00:00Z");
const minute = 60_000;
const hour = 60 * minute;
const at = (ms: number) => new Date(ms).toISOString();

function change(id: string, service: string, startsAfter: number, over: Partial<Change> = {}) {
  return {
    id,
    service,
    environment: "prod",
    kind: "deploy",
    status: "claimed",
    start: at(noon + startsAfter),
    end: at(noon + startsAfter + 30 * minute),
    run_id: id,
    created_at: at(noon),
    ...over,
  } as Change;
}

const around = (others: Change[], more: { freezes?: Freeze[]; incidents?: Incident[] } = {}) => ({
  others,
  freezes: more.freezes ?? [],
  incidents: more.incidents ?? [],
  catalogue,
  now: noon,
});

/** A repeatable source of numbers, so that a failure can be looked at again. */
function* numbers(seed: number): Generator<number, never> {
  let state = seed;
  for (;;) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    yield state / 2_147_483_648;
  }
}

describe("the distance between two windows", () => {
  it("is the same from both sides, negative exactly when they overlap", () => {
    const random = numbers(7);
    const window = (): Span => {
      const start = Math.floor(random.next().value * 500);
      return { start, end: start + 1 + Math.floor(random.next().value * 100) };
    };
    for (let round = 0; round < 1_000; round++) {
      const [a, b] = [window(), window()];
      expect(distance(a, b)).toBe(distance(b, a));
      expect(distance(a, b) < 0).toBe(a.start < b.end && b.start < a.end);
    }
  });

  it.each([
    [{ start: 90, end: 100 }, "1 h 12 min after deploy of llm ends", 72],
    [{ start: 90, end: 100 }, "right after deploy of llm ends", 0],
    [{ start: 90, end: 100 }, "overlaps deploy of llm", -1],
  ])("is said in words (%#)", (_, text, apart) => {
    const other = { start: 0, end: 30 * minute };
    const own = { start: other.end + apart * minute, end: other.end + apart * minute + hour };
    expect(apartText(own, other, "deploy of llm")).toBe(text);
  });

  it("is said from the other side too", () => {
    const own = { start: 0, end: 30 * minute };
    const other = { start: 50 * minute, end: hour };
    expect(apartText(own, other, "scale of llm")).toBe("20 min before scale of llm begins");
  });
});

describe("the neighbourhood", () => {
  it.each([
    ["prod", "chat", "chat", "same"],
    ["prod", "chat", "llm", "depends on"],
    ["prod", "chat", "shop", "used by"],
    // One hop: what merely shares a neighbour does not count.
    ["prod", "shop", "llm", undefined],
    ["prod", "chat", "mail", undefined],
    ["strict", "chat", "mail", "environment"],
    ["strict", "chat", "llm", "depends on"],
  ])("in %s, %s and %s: %s", (environment, service, other, relation) => {
    expect(relationOf(catalogue, environment, service, other)).toBe(relation);
  });

  it("is left at exactly the guard band, and not a second before", () => {
    const own = change("own", "chat", 0);
    const ends = (apart: number) => change("other", "llm", -30 * minute - apart);
    expect(nearOf(own, [ends(2 * hour)], catalogue, noon)).toEqual([]);
    expect(nearOf(own, [ends(2 * hour - 1_000)], catalogue, noon)).toHaveLength(1);
  });

  it("holds what happened and what is claimed, not what waits or was dropped", () => {
    const own = change("own", "chat", 0);
    const ids = (others: Change[]) =>
      nearOf(own, others, catalogue, noon).map((near) => near.change.id);
    const statuses = ["claimed", "running", "succeeded", "failed", "rolled_back", "overrun"];
    const dropped = ["held", "cancelled", "rejected", "expired"];
    const all = [...statuses, ...dropped].map((status) =>
      change(status, "llm", hour, { status: status as Change["status"] }),
    );
    expect(ids(all).sort()).toEqual(statuses.sort());
    const lapsed = change("lapsed", "llm", hour, { claimed_until: at(noon - 1) });
    expect(ids([lapsed])).toEqual([]);
    expect(ids([own, change("far", "mail", 0)])).toEqual([]);
    expect(ids([change("elsewhere", "llm", 0, { environment: "strict" })])).toEqual([]);
  });

  it("counts what still runs until now", () => {
    const own = change("own", "chat", 0);
    const late = change("late", "llm", -5 * hour, { status: "running" });
    expect(nearOf(own, [late], catalogue, noon)[0]?.distance).toBe(0);
  });
});

describe("the explanation", () => {
  it("of a held change names each blocker with its distance and relation", () => {
    const held = change("own", "chat", 102 * minute, { status: "held", blockers: ["b1"] });
    const blocker = change("b1", "llm", 0);
    const { headline, tone, reasons } = explain(held, around([blocker]));
    expect(tone).toBe("warning");
    expect(headline).toBe(
      "It waits for another person's decision: something is closer than the 2 h that prod keeps between changes.",
    );
    expect(reasons.map(({ text }) => text)).toEqual([
      "1 h 12 min after deploy of llm ends (chat depends on llm); the guard band of prod is 2 h.",
    ]);
    expect(reasons[0]?.change).toBe(blocker);
  });

  it("says when a blocker has gone, and when another one came", () => {
    const held = change("own", "chat", hour, { status: "held", blockers: ["b1"] });
    const gone = change("b1", "llm", 0, { status: "cancelled" });
    const later = change("b2", "shop", 0);
    const texts = explain(held, around([gone, later])).reasons.map(({ text }) => text);
    expect(texts[0]).toContain("It is no longer in the way: cancelled.");
    expect(texts[1]).toContain("(chat is used by shop)");
    expect(texts[1]).toContain("It was not there when this one asked.");
  });

  it.each([
    [{ decided_by: "Bob" }, "good", /^Bob confirmed it although others are near/],
    [{}, "good", /no other change of its neighbourhood was closer than 2 h/],
    [{ status: "rejected", decided_by: "Bob" }, "bad", /^Bob rejected it/],
    [{ status: "expired", confirm_by: at(noon - 1) }, "neutral", /Nobody decided in time/],
    [{ status: "expired" }, "neutral", /did not start in time/],
    [{ status: "held", confirm_by: at(noon - 1) }, "neutral", /nobody decided in time/],
    [{ status: "cancelled" }, "neutral", /cancelled/],
    [{ kind: "rollback" }, "neutral", /A rollback is never held back/],
    [{ kind: "emergency_action" }, "neutral", /An emergency action is never held back/],
  ] as const)("of %j is %s", (over, tone, headline) => {
    const explained = explain(change("own", "chat", 0, over as Partial<Change>), around([]));
    expect(explained.tone).toBe(tone);
    expect(explained.headline).toMatch(headline);
  });

  it("names the freeze and the critical incident that deny what has not begun", () => {
    const freeze = { id: "f", reason: "peak", created_by: "Bob", start: at(noon) } as Freeze;
    const incident = {
      id: "i",
      number: 7,
      severity: "critical",
      status: "open",
      service: "llm",
      environment: "prod",
    } as Incident;
    const more = { freezes: [freeze], incidents: [incident] };
    const texts = (over: Partial<Change>) =>
      explain(change("own", "chat", 0, over), around([], more)).reasons.map(({ text }) => text);
    expect(texts({ status: "held" })).toEqual([
      "A freeze denies it: “peak” (Bob).",
      "Incident #7 on llm is critical: until it is resolved only rollbacks and emergency actions go on.",
    ]);
    expect(texts({ status: "running" })).toEqual([]);
    expect(texts({ kind: "rollback" })).toEqual([]);
  });
});

describe("a freeze", () => {
  const freeze = (over: Partial<Freeze>) =>
    ({ id: "f", reason: "", created_by: "", start: at(noon), created_at: "", ...over }) as Freeze;

  it.each([
    ["is half-open at its start", {}, -30 * minute, false],
    ["covers what reaches into it", {}, -29 * minute, true],
    ["is half-open at its end", { end: at(noon + hour) }, hour, false],
    ["covers the last instant", { end: at(noon + hour) }, hour - 1, true],
    ["without an end never ends", {}, 1_000 * hour, true],
    ["needs all of its fields", { services: ["chat"], environments: ["strict"] }, 0, false],
    ["needs one of each list", { services: ["llm", "chat"], kinds: ["deploy"] }, 0, true],
  ])("%s", (_, over, start, meets) => {
    expect(freezeMeets(freeze(over as Partial<Freeze>), change("c", "chat", start))).toBe(meets);
  });
});

describe("a critical incident", () => {
  it.each([
    ["on a neighbour", { service: "llm", environment: "prod" }, true],
    ["two hops away", { service: "llm", environment: "prod", own: "shop" }, false],
    ["elsewhere", { service: "llm", environment: "strict" }, false],
    ["of a whole environment", { environment: "prod" }, true],
    ["of no place", {}, false],
    ["that is over", { service: "llm", environment: "prod", status: "resolved" }, false],
    ["that is a warning", { service: "llm", environment: "prod", severity: "warning" }, false],
  ])("%s", (_, { own = "chat", ...over }: Record<string, string>, near) => {
    const incident = { severity: "critical", status: "open", ...over } as Incident;
    const place = { service: own, environment: "prod" };
    expect(criticalNear(place, [incident], catalogue)).toHaveLength(near ? 1 : 0);
  });
});
