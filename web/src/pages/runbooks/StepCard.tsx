import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import type { RunbookRun } from "../../api/types";
import { serverNow } from "../../format/clock";
import { parseDuration, span } from "../../format/duration";
import { Countdown } from "../../ui/Countdown";
import { Time } from "../../ui/Time";
import { RunStatusTag, VerificationTag, words } from "../../ui/tones";
import { AnswerButtons } from "./AnswerButtons";
import { answerLabel } from "./answers";
import { KindTag } from "./ComingSteps";
import { CriterionView } from "./CriterionView";
import { evidenceOf, isLiveRun, tookMs } from "./progress";
import { actionRunQuery } from "./queries";
import classes from "./StepCard.module.css";
import { StepStatusTag } from "./statusTags";
import type { StepState } from "./types";
import type { Given } from "./useAnswer";

type Props = {
  run: RunbookRun;
  number: number;
  state: StepState;
  onRefused: (given: Given, error: unknown) => void;
};

/** One step: its text, what it showed, and, when it asks, its buttons. The current one is open. */
export function StepCard({ run, number, state, onRefused }: Props) {
  const { step } = state;
  const current = isLiveRun(run) && run.current === number - 1;
  const card = useRef<HTMLLIElement>(null);
  useEffect(() => {
    // Only when it is out of sight.
    if (current) card.current?.scrollIntoView?.({ block: "nearest" });
  }, [current]);
  return (
    <li
      ref={card}
      value={number}
      className={classes.card}
      data-testid="step"
      data-step={step.id}
      data-status={state.status}
      data-current={current || undefined}
      aria-current={current ? "step" : undefined}
    >
      <details open={current} className={classes.details}>
        <summary className={classes.summary}>
          <span className={classes.number}>{number}</span>
          <span className={classes.title}>{step.title}</span>
          <span className={classes.tags}>
            <KindTag step={step} />
            <StepStatusTag status={state.status} over={!isLiveRun(run)} />
          </span>
        </summary>
        <div className={classes.body}>
          <dl className={classes.facts}>
            <Fact name="Command">
              <code className={classes.command}>{step.command}</code>
            </Fact>
            <Fact name="Expected effect">{step.expect}</Fact>
          </dl>
          {step.text && <Text size="sm">{step.text}</Text>}
          {step.criterion && (
            <CriterionView criterion={step.criterion} state={state} live={current} />
          )}
          {current && step.kind === "decision" && <Evidence run={run} before={number - 1} />}
          <Outcome state={state} current={current} />
          {current && state.answers.length > 0 && (
            <AnswerButtons run={run} state={state} onRefused={onRefused} />
          )}
        </div>
      </details>
      {!current && state.detail && <p className={classes.detail}>{state.detail}</p>}
    </li>
  );
}

/** What a decision looks at: the criterion of the step before it that has one, live. */
function Evidence({ run, before }: { run: RunbookRun; before: number }) {
  const state = evidenceOf(run, before);
  if (!state?.step.criterion) return null;
  return (
    <div>
      <Text size="xs" c="var(--hf-muted)" mb={4}>
        As it stands now, from “{state.step.title}”
      </Text>
      <CriterionView criterion={state.step.criterion} state={state} live />
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Time, who, what was seen, and the action run that it started. */
function Outcome({ state, current }: { state: StepState; current: boolean }) {
  const { step } = state;
  const took = state.ended_at ? tookMs(state, serverNow()) : undefined;
  const deciding = state.choice && state.by;
  const facts = factsOf(state, took);
  return (
    <>
      {current && state.detail && <p className={classes.detail}>{state.detail}</p>}
      <div className={classes.outcome}>
        {current && state.deadline && state.status !== "pending" && (
          <span className={classes.deadline}>
            <Text size="xs" c="var(--hf-muted)">
              time left
            </Text>
            <Countdown from={state.started_at} until={state.deadline} />
          </span>
        )}
        {facts.length > 0 && (
          <Text size="xs" c="var(--hf-muted)" component="span">
            {facts.join(" · ")}
          </Text>
        )}
        {state.started_at && (
          <Text size="xs" c="var(--hf-muted)" component="span">
            {state.status === "asking" ? "asks since" : "began"} <Time at={state.started_at} />
            {state.ended_at && (
              <>
                , over <Time at={state.ended_at} />
              </>
            )}
          </Text>
        )}
        {state.by && (
          <Text size="xs" component="span">
            {state.by}
            {deciding && ` answered “${answerLabel(state, state.choice ?? "")}”`}
            {!deciding && step.kind === "action" && " pressed"}
          </Text>
        )}
        {state.action_run && <StartedRun id={state.action_run} />}
      </div>
    </>
  );
}

/** How often, how long, and, before it began, what bounds it. */
function factsOf({ step, attempt, started_at }: StepState, took: number | undefined): string[] {
  const facts = [];
  if (attempt > 1) facts.push(`attempt ${attempt}`);
  if (took !== undefined) facts.push(`took ${span(took)}`);
  if (!started_at && step.timeout) facts.push(`at most ${length(step.timeout)}`);
  if (!started_at && step.wait) facts.push(`waits ${length(step.wait)}`);
  if (!started_at && step.kind !== "note") facts.push(onFailure[step.on_failure]);
  return facts;
}

/** "3 min" of "3m0s". */
function length(text: string): string {
  const ms = parseDuration(text);
  return ms === undefined ? text : span(ms);
}

const onFailure: Record<StepState["step"]["on_failure"], string> = {
  ask: "on failure a person is asked",
  stop: "on failure the run ends",
  continue: "on failure it goes on",
};

/** What became of the action that a step started. */
function StartedRun({ id }: { id: string }) {
  const run = useQuery(actionRunQuery(id)).data;
  if (!run) return null;
  return (
    <span className={classes.started} data-testid="started-run">
      <Text size="xs" component="span" c="var(--hf-muted)">
        action
      </Text>
      <RunStatusTag status={run.status} />
      {run.status === "active" && <VerificationTag verification={run.verification} />}
      {run.ended_at && run.end_reason && (
        <Text size="xs" component="span" c="var(--hf-muted)">
          {words(run.end_reason)} <Time at={run.ended_at} />
        </Text>
      )}
    </span>
  );
}
