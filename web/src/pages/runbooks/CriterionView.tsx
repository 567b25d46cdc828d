import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { serverNow } from "../../format/clock";
import { noData } from "../../format/number";
import { useNow } from "../../ui/useNow";
import { CriterionCurve } from "./CriterionCurve";
import classes from "./CriterionView.module.css";
import { demand, judge, measure, newest } from "./criterion";
import { criterionQuery } from "./queries";
import { VerdictTag } from "./statusTags";
import type { Criterion, StepState } from "./types";

type Props = { criterion: Criterion; state: StepState; live: boolean };

/** What must hold, its query, and, while the step is in progress, how it stands right now. */
export function CriterionView({ criterion, state, live }: Props) {
  return (
    <div className={classes.root} data-testid="criterion">
      <div className={classes.demand}>
        <Text size="xs" c="var(--hf-muted)" component="div">
          Criterion
        </Text>
        <Text size="sm" fw={600} component="div">
          {demand(criterion)}
        </Text>
        <code className={classes.query}>{criterion.query}</code>
      </div>
      {live ? <Live criterion={criterion} /> : <Last criterion={criterion} state={state} />}
    </div>
  );
}

function Live({ criterion }: { criterion: Criterion }) {
  useNow();
  const { data, error } = useQuery(criterionQuery(criterion.query));
  const series = data?.items ?? [];
  const { verdict, value } = judge(criterion, newest(series, serverNow()));
  return (
    <div className={classes.live}>
      <div className={classes.now}>
        <span className={classes.value} data-testid="criterion-value">
          {measure(value, criterion.unit)}
        </span>
        <VerdictTag verdict={verdict} />
      </div>
      {series.length > 0 && <CriterionCurve series={series} criterion={criterion} />}
      <Text size="xs" c="var(--hf-muted)" component="div">
        {error
          ? "The metrics could not be read just now."
          : data?.source === "none"
            ? "No Prometheus is connected, so there is nothing to judge with."
            : series.length > 0
              ? "The last 10 minutes; the line is the limit."
              : "The query gave no series."}
      </Text>
    </div>
  );
}

function Last({ criterion, state }: { criterion: Criterion; state: StepState }) {
  if (!state.ended_at) return null;
  const known = state.value !== null && state.value !== undefined;
  return (
    <div className={classes.live}>
      <Text size="xs" c="var(--hf-muted)" component="div">
        Last seen
      </Text>
      <span className={classes.value}>{known ? measure(state.value, criterion.unit) : noData}</span>
    </div>
  );
}
