import type { ReactNode } from "react";
import classes from "./Tag.module.css";

/** How a thing stands: good, in motion, to be watched, bad, or none of these. */
export type Tone = "good" | "info" | "warning" | "bad" | "critical" | "neutral";

/** A small word with a tone. The word carries the meaning; the colour only helps. */
export function Tag({
  tone,
  icon,
  title,
  children,
}: {
  tone: Tone;
  icon?: ReactNode;
  title?: string | undefined;
  children: ReactNode;
}) {
  return (
    <span className={classes.tag} data-tone={tone} title={title}>
      {icon}
      {children}
    </span>
  );
}
