import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FakeEventSource } from "../test/render";
import { connect } from "./connection";

beforeEach(() => {
  vi.useFakeTimers();
  FakeEventSource.all = [];
  vi.stubGlobal("EventSource", FakeEventSource);
});
afterEach(() => vi.useRealTimers());

function listen() {
  const listener = { onOpen: vi.fn(), onError: vi.fn(), onChange: vi.fn(), onReset: vi.fn() };
  const close = connect("/api/v1/events", listener);
  const source = () => {
    const last = FakeEventSource.all.at(-1);
    if (!last) throw new Error("nothing was opened");
    return last;
  };
  return { listener, close, source };
}

const change = { topic: "runs", id: "r1" };

it("leaves it to the server what was missed after an event with an id", () => {
  const { listener, source } = listen();
  source().say("open");
  source().say("change", change, "41");
  source().say("error");
  source().say("open");
  expect(listener.onReset).not.toHaveBeenCalled();
  source().say("reset");
  expect(listener.onReset).toHaveBeenCalledTimes(1);
  expect(FakeEventSource.all).toHaveLength(1);
});

it("reads everything again when it was cut before its first event", () => {
  const { listener, source } = listen();
  source().say("open");
  expect(listener.onReset).not.toHaveBeenCalled();
  source().say("error");
  source().say("open");
  expect(listener.onReset).toHaveBeenCalledTimes(1);
});

it("opens a new stream when the browser gave up, and reads everything again", () => {
  const { listener, source } = listen();
  source().say("open");
  source().say("change", change, "41");
  source().close();
  source().say("error");
  expect(FakeEventSource.all).toHaveLength(1);
  vi.advanceTimersByTime(2_000);
  expect(FakeEventSource.all).toHaveLength(2);
  source().say("open");
  expect(listener.onReset).toHaveBeenCalledTimes(1);
});

it("waits longer after each failure, and not at all once it is closed", () => {
  const { source, close } = listen();
  for (const [wait, opened] of [
    [2_000, 2],
    [4_000, 3],
  ] as const) {
    source().close();
    source().say("error");
    vi.advanceTimersByTime(wait - 1);
    expect(FakeEventSource.all).toHaveLength(opened - 1);
    vi.advanceTimersByTime(1);
    expect(FakeEventSource.all).toHaveLength(opened);
  }
  source().close();
  source().say("error");
  close();
  vi.advanceTimersByTime(60_000);
  expect(FakeEventSource.all).toHaveLength(3);
});
