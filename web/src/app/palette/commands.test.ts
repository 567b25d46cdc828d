import { describe, expect, it } from "vitest";
import { type Command, findCommands, nextIndex, scoreOf } from "./commands";

const command = (label: string, over: Partial<Command> = {}): Command => ({
  id: label,
  group: "Go to",
  label,
  run: () => {},
  ...over,
});
const commands = [
  command("Overview", { keywords: "home" }),
  command("Incidents"),
  command("#12 Chat is slow", { group: "Open incidents", detail: "critical, chat" }),
  command("#3 Cache is cold", { group: "Open incidents" }),
  command("Start: Slow model…", { group: "Runbooks" }),
  command("Trip breaker…", { group: "Actions", keywords: "trip_breaker" }),
];
const found = (query: string) =>
  findCommands(commands, query).flatMap(({ commands: list }) => list.map(({ label }) => label));

describe("the palette", () => {
  it("shows everything in its order until something is typed", () => {
    expect(found(" ")).toEqual(commands.map(({ label }) => label));
    expect(findCommands(commands, "").map(({ group }) => group)).toEqual([
      "Go to",
      "Open incidents",
      "Runbooks",
      "Actions",
    ]);
  });

  it.each([
    ["#12", ["#12 Chat is slow"]],
    ["slow", ["#12 Chat is slow", "Start: Slow model…"]],
    ["start slow", ["Start: Slow model…"]],
    ["critical", ["#12 Chat is slow"]],
    ["home", ["Overview"]],
    ["TRIP", ["Trip breaker…"]],
    ["inc", ["Incidents", "#12 Chat is slow", "#3 Cache is cold"]],
    ["nothing like it", []],
  ])("finds %j", (query, labels) => {
    expect(found(query)).toEqual(labels);
  });

  it("needs every word, and prefers the beginning", () => {
    for (const one of commands) {
      for (const word of one.label.toLowerCase().split(" ")) {
        expect(scoreOf(one, word)).toBeGreaterThan(0);
        expect(scoreOf(one, `${word} zebra`)).toBe(0);
      }
    }
    expect(scoreOf(command("Trip"), "tr")).toBeGreaterThan(scoreOf(command("A trip"), "tr"));
    expect(scoreOf(command("A trip"), "tr")).toBeGreaterThan(scoreOf(command("Astride"), "tr"));
  });

  it("goes around with the arrow keys", () => {
    expect(nextIndex(0, 3, "ArrowUp")).toBe(2);
    expect(nextIndex(2, 3, "ArrowDown")).toBe(0);
    expect(nextIndex(0, 0, "ArrowDown")).toBeUndefined();
    expect(nextIndex(0, 3, "a")).toBeUndefined();
  });
});
