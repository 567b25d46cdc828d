import { describe, expect, it } from "vitest";
import { keysOfTopic, nextStream, parseChanged, startOfStream, streamIsStale } from "./stream";

describe("the stream's state", () => {
  const live = nextStream(startOfStream(0), { kind: "open", at: 100 });

  it("is stale only after ten seconds down", () => {
    const down = nextStream(live, { kind: "error", at: 1_000 });
    expect(streamIsStale(down, 11_000)).toBe(false);
    expect(streamIsStale(down, 11_001)).toBe(true);
  });

  it("counts from the first failure, not from the last retry", () => {
    let state = nextStream(live, { kind: "error", at: 1_000 });
    state = nextStream(state, { kind: "error", at: 9_000 });
    expect(state.since).toBe(1_000);
    expect(streamIsStale(state, 11_001)).toBe(true);
  });

  it("is stale when it never opened", () => {
    expect(streamIsStale(startOfStream(0), 10_001)).toBe(true);
    const failed = nextStream(startOfStream(0), { kind: "error", at: 8_000 });
    expect(streamIsStale(failed, 10_001)).toBe(true);
  });

  it("is never stale while live, and live again after a retry", () => {
    expect(streamIsStale(live, 1e9)).toBe(false);
    const again = nextStream(nextStream(live, { kind: "error", at: 1 }), { kind: "open", at: 2 });
    expect(again.phase).toBe("live");
  });
});

describe("events", () => {
  it("reads topic and id, and refuses the rest", () => {
    expect(parseChanged('{"topic":"runs","id":"r1"}')).toEqual({ topic: "runs", id: "r1" });
    expect(parseChanged('{"topic":"policy"}')).toEqual({ topic: "policy", id: "" });
    for (const bad of ["", "null", "7", "{}", "{", undefined, { topic: "runs" }]) {
      expect(parseChanged(bad)).toBeUndefined();
    }
  });

  it("knows what a topic makes old; a new topic makes everything old", () => {
    expect(keysOfTopic("runs")).toEqual(["runs", "incidents"]);
    expect(keysOfTopic("audit")).toEqual([]);
    expect(keysOfTopic("drills")).toBe("all");
  });
});
