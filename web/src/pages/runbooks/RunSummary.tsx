import type { RunbookRun } from "../../api/types";
import { serverNow } from "../../format/clock";
import { span } from "../../format/duration";
import { Panel } from "../../ui/Panel";
import { Time } from "../../ui/Time";
import { byPhase, phaseMs, phaseTexts, tally, tookMs } from "./progress";
import classes from "./RunSummary.module.css";
import { StepStatusTag } from "./statusTags";

/** How a run went, once it is over: how long, how each step ended, who ended it. */
export function RunSummary({ run }: { run: RunbookRun }) {
  const now = serverNow();
  const end = run.ended_at ? Date.parse(run.ended_at) : now;
  const reached = run.steps
    .map((state, index) => ({ state, number: index + 1 }))
    .filter(({ state }) => state.status !== "pending");
  return (
    <Panel title="Summary" hint={tally(run)} testid="run-summary">
      <dl className={classes.facts}>
        <div>
          <dt>Took</dt>
          <dd>{span(end - Date.parse(run.started_at))}</dd>
        </div>
        {byPhase(run).map(({ phase, steps }) => {
          const ms = phaseMs(steps, end);
          return (
            <div key={phase}>
              <dt>{phaseTexts[phase].name}</dt>
              <dd>{ms === undefined ? "not reached" : span(ms)}</dd>
            </div>
          );
        })}
        {run.ended_at && (
          <div>
            <dt>Ended</dt>
            <dd>
              <Time at={run.ended_at} />
              {run.ended_by && ` by ${run.ended_by}`}
            </dd>
          </div>
        )}
      </dl>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Result</th>
            <th scope="col">Took</th>
            <th scope="col">By</th>
          </tr>
        </thead>
        <tbody>
          {reached.map(({ state, number }) => {
            const took = tookMs(state, end);
            return (
              <tr key={state.step.id}>
                <th scope="row">
                  {number}. {state.step.title}
                </th>
                <td>
                  <StepStatusTag status={state.status} over />
                </td>
                <td>{took === undefined ? "–" : span(took)}</td>
                <td>{state.by || "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Panel>
  );
}
