import { describe, expect, it } from "vitest";
import { axisLabels, bytes, measure, measured, type Unit } from "./unit";

describe("measurements", () => {
  it.each<[number, Unit, string]>([
    [0.038, "seconds_per_token", "38 ms/token"],
    [0.0042, "seconds_per_token", "4.2 ms/token"],
    [1240.4, "tokens_per_second", "1,240 tokens/s"],
    [4.24, "requests_per_second", "4.2 requests/s"],
    [1, "requests", "1 request"],
    [37, "requests", "37 requests"],
    [0.42, "seconds", "420 ms"],
    [2.13, "seconds", "2.1 s"],
    [0, "seconds", "0 s"],
    [0.004, "ratio", "0.4 %"],
    [0, "ratio", "0 %"],
    [0.5, "ratio", "50 %"],
    [0.00001, "ratio", "< 0.01 %"],
  ])("%d %s is %s", (value, unit, text) => {
    expect(measured(value, unit)).toBe(text);
  });

  it("never shows what is missing as zero", () => {
    for (const nothing of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(measured(nothing, "ratio")).toBe("no data");
      expect(measure(nothing, "requests")).toBeUndefined();
    }
  });

  it("shows a unit that only a newer server knows", () => {
    expect(measured(7, "joules_per_token" as Unit)).toBe("7 joules per token");
  });
});

describe("the labels of an axis", () => {
  it.each<[number[], Unit, string[]]>([
    [[0, 0.5, 1], "seconds", ["0 s", "0.5 s", "1 s"]],
    [[0, 0.2, 0.4], "seconds", ["0 ms", "200 ms", "400 ms"]],
    [[0, 0.005], "ratio", ["0 %", "0.5 %"]],
    [[0, 0.04], "seconds_per_token", ["0", "40"]],
    [[0, 1500], "tokens_per_second", ["0", "1,500"]],
  ])("%j %s are %j", (values, unit, labels) => {
    expect(axisLabels(values, unit)).toEqual(labels);
  });
});

describe("bytes", () => {
  it.each([
    [0, "0 B"],
    [512, "512 B"],
    [1536, "1.5 KiB"],
    [79 * 1024 ** 3, "79 GiB"],
  ])("%d is %s", (value, text) => {
    expect(bytes(value)).toBe(text);
  });

  it("are not invented", () => {
    expect(bytes(null)).toBe("no data");
  });
});
