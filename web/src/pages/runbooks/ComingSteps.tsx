import { Text } from "@mantine/core";
import type { RunbookStep } from "../../api/types";
import { plural } from "../../format/number";
import { Tag } from "../../ui/Tag";
import type { Draft } from "../actions/params";
import classes from "./ComingSteps.module.css";
import { fill } from "./params";
import { phases, phaseTexts } from "./progress";

/** The steps of a runbook in their order, before any of them runs. */
export function ComingSteps({ steps, values }: { steps: RunbookStep[]; values: Draft }) {
  const presses = steps.filter((step) => step.kind === "action" && !step.automatic).length;
  return (
    <section className={classes.root} aria-label="What will come">
      <Text size="sm" fw={600}>
        {plural(steps.length, "step")} will come
      </Text>
      <Text size="xs" c="var(--hf-muted)">
        {presses > 0
          ? `${plural(presses, "action")} of them each show a plan first and wait for a press.`
          : "None of them waits for a press before an action."}
      </Text>
      {phases.map((phase) => {
        const own = steps.filter((step) => step.phase === phase);
        if (own.length === 0) return null;
        return (
          <div key={phase}>
            <Text component="h3" className={classes.phase}>
              {phaseTexts[phase].name}
            </Text>
            <ol className={classes.steps}>
              {own.map((step) => (
                <li key={step.id} value={steps.indexOf(step) + 1}>
                  <span className={classes.title}>{fill(step.title, values)}</span>{" "}
                  <KindTag step={step} />
                </li>
              ))}
            </ol>
          </div>
        );
      })}
    </section>
  );
}

const kinds: Record<RunbookStep["kind"], string> = {
  action: "action",
  check: "check",
  decision: "decision",
  note: "note",
  wait: "wait",
};

/** What a step does, and whether it does it without being asked. */
export function KindTag({ step }: { step: Pick<RunbookStep, "kind" | "automatic"> }) {
  const auto = step.kind === "action" && step.automatic;
  return <Tag tone="neutral">{auto ? "action, by itself" : kinds[step.kind]}</Tag>;
}
