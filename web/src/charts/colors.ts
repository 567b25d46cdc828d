import type { MarkKind } from "./marks";

/** The colours of a canvas, which cannot read style sheets by itself. */
export type ChartColors = {
  readonly text: string;
  readonly line: string;
  readonly curves: readonly string[];
  readonly warning: string;
  readonly critical: string;
  readonly marks: Readonly<Record<MarkKind, string>>;
};

/** Reads the tokens of tokens.css as they are in the present theme. */
export function readColors(): ChartColors {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--hf-${name}`).trim();
  return {
    text: token("muted"),
    line: token("line"),
    curves: ["curve", "curve-2", "curve-3", "curve-4"].map(token),
    warning: token("warning"),
    critical: token("critical"),
    marks: {
      alert: token("critical"),
      resolved: token("good"),
      change: token("mark-change"),
      action: token("mark-action"),
    },
  };
}
