import type { GoldenSignal } from "../api/types";
import { noData, percent } from "./number";

export type Unit = GoldenSignal["unit"];

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 2 });

function figure(value: number): string {
  const size = Math.abs(value);
  return (size !== 0 && size < 10 ? fine : whole).format(value);
}

/** A number and what it counts, apart, so that the unit can be set smaller. */
export type Measured = { figure: string; unit: string };

/**
 * A value as its unit is read: "38" "ms/token", "1,240" "tokens/s", "4.2"
 * "requests/s", "2.1" "s", "12" "%". Undefined where nothing was measured.
 */
export function measure(value: number | null | undefined, unit: Unit): Measured | undefined {
  if (value === null || value === undefined || !Number.isFinite(value)) return undefined;
  switch (unit) {
    case "seconds_per_token":
      return { figure: figure(value * 1000), unit: "ms/token" };
    case "tokens_per_second":
      return { figure: figure(value), unit: "tokens/s" };
    case "requests_per_second":
      return { figure: figure(value), unit: "requests/s" };
    case "requests":
      return { figure: figure(value), unit: value === 1 ? "request" : "requests" };
    case "seconds":
      return Math.abs(value) < 1 && value !== 0
        ? { figure: figure(value * 1000), unit: "ms" }
        : { figure: figure(value), unit: "s" };
    case "ratio":
      return { figure: percent(value).replace(" %", ""), unit: "%" };
    default:
      // A unit of a newer server: the number is still worth more than nothing.
      return { figure: figure(value), unit: String(unit).replaceAll("_", " ") };
  }
}

/** "38 ms/token", "12 %"; "no data" where nothing was measured. */
export function measured(value: number | null | undefined, unit: Unit): string {
  const parts = measure(value, unit);
  return parts ? `${parts.figure} ${parts.unit}` : noData;
}

/** Labels of an axis. All of them count the same, whatever their size. */
export function axisLabels(values: readonly number[], unit: Unit): string[] {
  const small = unit === "seconds" && Math.max(...values.map(Math.abs)) < 1;
  return values.map((value) => {
    switch (unit) {
      case "seconds_per_token":
        return figure(value * 1000);
      case "seconds":
        return small ? `${figure(value * 1000)} ms` : `${figure(value)} s`;
      case "ratio":
        return `${figure(value * 100)} %`;
      default:
        return figure(value);
    }
  });
}

const sizes = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** "512 B", "1.5 GiB", "79 GiB": powers of 1024; "no data" where nothing was measured. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return noData;
  let size = value;
  let step = 0;
  while (Math.abs(size) >= 1024 && step < sizes.length - 1) {
    size /= 1024;
    step++;
  }
  return `${figure(size)} ${sizes[step]}`;
}
