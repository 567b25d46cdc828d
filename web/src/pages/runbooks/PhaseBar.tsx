import { IconCircle, IconCircleCheck, IconHandStop, IconPlayerPlay } from "@tabler/icons-react";
import classes from "./PhaseBar.module.css";
import { type PhaseState, type PhaseView, phaseTexts } from "./progress";

const icons: Record<PhaseState, typeof IconCircle> = {
  done: IconCircleCheck,
  now: IconPlayerPlay,
  "to come": IconCircle,
  ended: IconHandStop,
  "not reached": IconCircle,
};

/** Isolate, locate, restore: where the run is. */
export function PhaseBar({ phases }: { phases: PhaseView[] }) {
  return (
    <ol className={classes.bar} aria-label="Phases" data-testid="phases">
      {phases.map(({ phase, over, steps, state }) => {
        const Icon = icons[state];
        return (
          <li
            key={phase}
            data-state={state}
            aria-current={state === "now" ? "step" : undefined}
            className={classes.phase}
          >
            <Icon size={20} aria-hidden />
            <span>
              <b>{phaseTexts[phase].name}</b>
              <span className={classes.count}>
                {state}, {over} of {steps.length}
              </span>
            </span>
          </li>
        );
      })}
    </ol>
  );
}
