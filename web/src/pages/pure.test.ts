import { describe, expect, it } from "vitest";
import type { ActionRun, ActionSpec, Change, Gateway, Incident } from "../api/types";
import { DialogKey } from "./actions/key";
import { defaultLease, leaseChoices } from "./actions/leaseChoices";
import { draftOf, fieldError, valuesOf } from "./actions/params";
import { isLink } from "./changes/ChangePage";
import { groupChanges } from "./changes/order";
import { worstFirst } from "./incidents/order";
import { changeFact, gatewayFact, incidentFact } from "./overview/facts";
import { soonestFirst } from "./runs/LeasesPanel";

const spec: ActionSpec = {
  name: "set_rate_limit",
  title: "Set rate limit",
  summary: "",
  role: "responder",
  dangerous: false,
  default_ttl: "20m0s",
  max_ttl: "1h0m0s",
  params: [
    { name: "target", kind: "limit_target", required: true, help: "" },
    { name: "rate", kind: "number", required: true, help: "" },
    { name: "burst", kind: "integer", required: false, help: "", default: 5 },
  ],
};

describe("an action's form", () => {
  it("begins with what was suggested, then with the defaults", () => {
    expect(draftOf(spec, { target: "tenant:acme", rate: 0 })).toEqual({
      target: "tenant:acme",
      rate: "0",
      burst: "5",
    });
  });

  it("sends numbers as numbers and leaves out what is empty", () => {
    expect(valuesOf(spec, { target: "t", rate: " 2.5 ", burst: "" })).toEqual({
      target: "t",
      rate: 2.5,
    });
  });

  it("sends nothing while a field is missing or wrong", () => {
    expect(valuesOf(spec, { target: "", rate: "1" })).toBeUndefined();
    expect(valuesOf(spec, { target: "t", rate: "many" })).toBeUndefined();
    expect(valuesOf(spec, { target: "t", rate: "1", burst: "1.5" })).toBeUndefined();
    const [target] = spec.params;
    expect(target && fieldError(target, " ")).toBe("Needed");
  });

  it("offers leases up to the maximum, with the default among them", () => {
    const choices = leaseChoices(spec.default_ttl, spec.max_ttl);
    expect(choices.map((choice) => choice.value)).toEqual(["5m", "15m", "20m", "30m", "1h"]);
    expect(defaultLease(spec.default_ttl, choices)).toBe("20m");
    expect(defaultLease("2h", choices)).toBe("5m");
  });
});

describe("the key of a dialog", () => {
  it("is one for one plan and another for another", () => {
    const key = new DialogKey();
    const first = key.for("a");
    expect(key.for("a")).toBe(first);
    expect(key.for("b")).not.toBe(first);
    expect(new DialogKey().for("a")).not.toBe(first);
  });
});

describe("order", () => {
  it("puts the worst, then the newest incident first", () => {
    const list = [
      { number: 1, severity: "warning" },
      { number: 2, severity: "critical" },
      { number: 3, severity: "critical" },
    ] as Incident[];
    expect(worstFirst(list).map((incident) => incident.number)).toEqual([3, 2, 1]);
  });

  it("puts the lease that ends first first, and those without an end last", () => {
    const list = [
      { id: "a" },
      { id: "c", expires_at: "2026-11-30T07:00:00Z" },
      { id: "b", expires_at: "2026-11-30T06:00:00Z" },
      { id: "0" },
    ] as ActionRun[];
    expect(soonestFirst(list).map((run) => run.id)).toEqual(["b", "c", "0", "a"]);
  });

  it("groups changes by what they ask of the reader", () => {
    const change = (id: string, status: Change["status"], start: string, end: string) =>
      ({ id, status, start, end }) as Change;
    const groups = groupChanges(
      [
        change("later", "claimed", "2026-11-30T09:00:00Z", "2026-11-30T10:00:00Z"),
        change("next", "claimed", "2026-11-30T08:00:00Z", "2026-11-30T09:00:00Z"),
        change("inside", "claimed", "2026-11-30T06:00:00Z", "2026-11-30T07:30:00Z"),
        change("over", "overrun", "2026-11-30T05:00:00Z", "2026-11-30T06:00:00Z"),
        change("held", "held", "2026-11-30T07:00:00Z", "2026-11-30T08:00:00Z"),
        change("done", "succeeded", "2026-11-30T01:00:00Z", "2026-11-30T02:00:00Z"),
      ],
      Date.parse("2026-11-30T07:00:00Z"),
    );
    const ids = (list: Change[]) => list.map(({ id }) => id);
    expect(ids(groups.held)).toEqual(["held"]);
    expect(ids(groups.now)).toEqual(["over", "inside"]);
    expect(ids(groups.upcoming)).toEqual(["next", "later"]);
  });
});

describe("the situation", () => {
  it("is unknown, not fine, while nothing was read", () => {
    expect(incidentFact(undefined, false).tone).toBe("neutral");
    expect(gatewayFact(undefined).tone).toBe("neutral");
    expect(changeFact(undefined).tone).toBe("neutral");
  });

  it("names gateways that do not hold the newest revision", () => {
    const gateways = [{ state: "live" }, { state: "behind" }, { state: "stale" }] as Gateway[];
    expect(gatewayFact(gateways)).toEqual({ value: "1/3", note: "1 stale, 1 behind", tone: "bad" });
  });
});

describe("links", () => {
  it("are web addresses only", () => {
    expect(isLink("https://ci.example/1")).toBe(true);
    expect(isLink("javascript:alert(1)")).toBe(false);
    expect(isLink(undefined)).toBe(false);
  });
});
