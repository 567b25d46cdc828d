import { durationText, parseDuration, span } from "../../format/duration";

const minute = 60_000;
const usual = [5, 15, 30, 60, 120, 240].map((minutes) => minutes * minute);

export type LeaseChoice = { value: string; label: string };

/** Lease lengths to choose from, the action's default among them, none above its maximum. */
export function leaseChoices(defaultTtl: string, maxTtl: string): LeaseChoice[] {
  const preset = parseDuration(defaultTtl);
  const max = parseDuration(maxTtl) || Number.POSITIVE_INFINITY;
  const lengths = new Set(usual.filter((length) => length <= max));
  if (preset && preset <= max) lengths.add(preset);
  return [...lengths]
    .sort((a, b) => a - b)
    .map((length) => ({ value: durationText(length), label: span(length) }));
}

/** The choice that stands for the action's default; the shortest where it has none. */
export function defaultLease(defaultTtl: string, choices: LeaseChoice[]): string {
  const preset = parseDuration(defaultTtl);
  const text = preset === undefined ? "" : durationText(preset);
  return choices.some((choice) => choice.value === text) ? text : (choices[0]?.value ?? "");
}
