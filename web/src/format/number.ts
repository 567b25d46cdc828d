/** What stands where nothing was measured. Never a zero: zero is a measurement. */
export const noData = "no data";

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 2 });

/** "12 %" of a ratio 0-1; two significant digits below 10 %, so that 0.4 % is not 0 %. */
export function percent(ratio: number | null | undefined): string {
  if (ratio === null || ratio === undefined || Number.isNaN(ratio)) return noData;
  const value = ratio * 100;
  if (value > 0 && value < 0.01) return "< 0.01 %";
  return `${(value !== 0 && value < 10 ? fine : whole).format(value)} %`;
}

/** "4.2" or "1,240" requests per second. */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return noData;
  return (value !== 0 && value < 10 ? fine : whole).format(value);
}

/** "12 ms", "0.4 ms", "1.2 s" of seconds. */
export function applyTime(seconds: number): string {
  const ms = seconds * 1000;
  if (ms >= 1000) return `${fine.format(seconds)} s`;
  return `${(ms < 10 ? fine : whole).format(ms)} ms`;
}

export function count(value: number): string {
  return whole.format(value);
}

/** "1 incident", "2 incidents". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${whole.format(value)} ${value === 1 ? one : many}`;
}

/** One line for any policy value: text as it is, "not set" for null, JSON for the rest. */
export function policyValue(value: unknown): string {
  if (value === null || value === undefined) return "not set";
  if (typeof value === "string") return value;
  return JSON.stringify(value);
}
