import { Alert, List, Text } from "@mantine/core";
import { IconAlertTriangle, IconLock } from "@tabler/icons-react";
import type { Plan, PolicyChange } from "../../api/types";
import { count, percent, plural, policyValue } from "../../format/number";
import { Time } from "../../ui/Time";
import classes from "./PlanView.module.css";

/** What would happen: summary, policy diff, blast radius, warnings, who is in the way. */
export function PlanView({ plan }: { plan: Plan }) {
  const { blast } = plan;
  return (
    <div className={classes.plan}>
      <Text fw={600}>{plan.summary}</Text>
      <dl className={classes.facts}>
        <div>
          <dt>Touches</dt>
          <dd>
            {blast.share === null || blast.share === undefined
              ? "no data on traffic in the last minute"
              : `${percent(blast.share)} of requests (${count(blast.requests)} in the last minute)`}
          </dd>
        </div>
        <div>
          <dt>Routes</dt>
          <dd>{blast.routes.length > 0 ? blast.routes.join(", ") : "none"}</dd>
        </div>
        <div>
          <dt>Gateways</dt>
          <dd title={blast.gateways.join(", ")}>
            {blast.gateways.length > 0
              ? plural(blast.gateways.length, "gateway")
              : "none is connected"}
          </dd>
        </div>
      </dl>
      <Diff diff={plan.diff} />
      {plan.warnings.length > 0 && (
        <Alert color="yellow" variant="light" icon={<IconAlertTriangle />} title="Mind this">
          <List size="sm">
            {plan.warnings.map((warning) => (
              <List.Item key={warning}>{warning}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      {plan.leased.map((lease) => (
        <Alert
          key={`${lease.run_id} ${lease.path}`}
          color="red"
          variant="light"
          icon={<IconLock />}
          title={`${lease.owner} holds ${lease.path}`}
        >
          “{lease.reason}”, until <Time at={lease.expires} />. Revert that run first.
        </Alert>
      ))}
    </div>
  );
}

/** Policy values before and after. */
export function Diff({ diff }: { diff: PolicyChange[] }) {
  if (diff.length === 0) {
    return (
      <Text size="sm" c="var(--hf-muted)">
        The policy has this already; nothing would change.
      </Text>
    );
  }
  return (
    <table className={classes.diff}>
      <thead>
        <tr>
          <th scope="col">Policy path</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {diff.map((change) => (
          <tr key={change.path}>
            <th scope="row">{change.path}</th>
            <td className={classes.before}>{policyValue(change.before)}</td>
            <td className={classes.after}>{policyValue(change.after)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
