import { describe, expect, it } from "vitest";
import { clockOffset, noteServerDate, serverNow } from "./clock";
import { countdown, durationText, parseDuration, relative, span } from "./duration";
import { applyTime, noData, percent, plural, policyValue, rate } from "./number";
import { localMinute, localTime, utcTime } from "./time";

const min = 60_000;

describe("countdown", () => {
  it.each([
    [0, "0:00"],
    [-5_000, "0:00"],
    [1, "0:01"],
    [59_001, "1:00"],
    [5 * min, "5:00"],
    [60 * min + 4_000, "1:00:04"],
  ])("%d ms is %s", (ms, text) => {
    expect(countdown(ms)).toBe(text);
  });
});

describe("spans", () => {
  it.each([
    [42_000, "42 s"],
    [12 * min, "12 min"],
    [185 * min, "3 h 5 min"],
    [180 * min, "3 h"],
    [52 * 60 * min, "2 d 4 h"],
  ])("%d ms is %s", (ms, text) => {
    expect(span(ms)).toBe(text);
  });

  it("says before and after", () => {
    expect(relative(2_000)).toBe("just now");
    expect(relative(12 * min)).toBe("12 min ago");
    expect(relative(-12 * min)).toBe("in 12 min");
  });
});

describe("durations of the API", () => {
  it.each([
    ["15m", 15 * min],
    ["1h30m", 90 * min],
    ["15m0s", 15 * min],
    ["500ms", 500],
  ])("reads %s", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(["", "15", "m", "1d", "15m later"])("refuses %j", (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  it("writes what it reads", () => {
    for (const text of ["5m", "1h", "1h30m", "4h"]) {
      expect(durationText(parseDuration(text) ?? 0)).toBe(text);
    }
  });
});

describe("numbers", () => {
  it("never shows a missing measurement as zero", () => {
    for (const missing of [null, undefined, Number.NaN]) {
      expect(percent(missing)).toBe(noData);
      expect(rate(missing)).toBe(noData);
    }
    expect(percent(0)).toBe("0 %");
    expect(rate(0)).toBe("0");
  });

  it("never rounds something to nothing", () => {
    expect(percent(0.0042)).toBe("0.42 %");
    expect(percent(0.00001)).toBe("< 0.01 %");
    expect(percent(0.316)).toBe("32 %");
    expect(rate(0.25)).toBe("0.25");
    expect(rate(1240.4)).toBe("1,240");
  });

  it("writes apply times, counts and policy values", () => {
    expect(applyTime(0.0004)).toBe("0.4 ms");
    expect(applyTime(0.012)).toBe("12 ms");
    expect(applyTime(1.24)).toBe("1.2 s");
    expect(plural(1, "alert")).toBe("1 alert");
    expect(plural(2, "alert")).toBe("2 alerts");
    expect(policyValue(null)).toBe("not set");
    expect(policyValue({ rps: 5 })).toBe('{"rps":5}');
  });
});

describe("times", () => {
  const now = new Date("2026-11-30T06:32:05Z");

  it("are local and leave out what is the same as now", () => {
    expect(localTime(new Date("2026-11-30T03:00:09Z"), now)).toBe("04:00:09");
    expect(localTime(new Date("2026-11-28T13:32:00Z"), now)).toBe("Sat 28 Nov 14:32");
    expect(localTime(new Date("2025-11-28T13:32:00Z"), now)).toBe("28 Nov 2025 14:32");
    expect(localMinute(new Date("2026-11-30T03:00:09Z"), now)).toBe("04:00");
  });

  it("are UTC on hover", () => {
    expect(utcTime(now)).toBe("2026-11-30 06:32:05 UTC");
  });

  it("survive nonsense", () => {
    expect(localTime(new Date("nonsense"), now)).toBe("unknown time");
    expect(utcTime(new Date("nonsense"))).toBe("unknown time");
  });
});

describe("the server's clock", () => {
  it("counts when it is minutes away, and not when it is a second away", () => {
    const arrived = Date.parse("2026-11-30T06:32:05Z");
    noteServerDate("Mon, 30 Nov 2026 06:37:05 GMT", arrived);
    expect(clockOffset()).toBe(300_500);
    expect(serverNow() - Date.now()).toBeGreaterThan(300_000);
    noteServerDate("Mon, 30 Nov 2026 06:32:06 GMT", arrived);
    expect(clockOffset()).toBe(0);
    noteServerDate("nonsense", arrived);
    noteServerDate(null, arrived);
    expect(clockOffset()).toBe(0);
  });
});
