import { Text } from "@mantine/core";
import {
  IconAlertTriangle,
  IconCircleCheck,
  IconCircleX,
  IconInfoCircle,
} from "@tabler/icons-react";
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import {
  changeQuery,
  changesBetweenQuery,
  freezesQuery,
  openIncidentsQuery,
} from "../../api/queries";
import type { Change } from "../../api/types";
import { serverNow } from "../../format/clock";
import { Loaded } from "../../ui/Panel";
import { ChangeStatusTag } from "../../ui/tones";
import { bandOf, type Catalogue } from "./guard";
import { servicesQuery } from "./queries";
import classes from "./WhyDecision.module.css";
import { explain, type Why, type WhyTone } from "./why";

/** Why a change stands as it does: who is near, how near, and what denies it. */
export function WhyDecision({ change }: { change: Change }) {
  const catalogue = useQuery(servicesQuery);
  return (
    <section className={classes.root} aria-label="Why this decision" data-testid="why">
      <Text component="h3" className={classes.title}>
        Why this decision
      </Text>
      <Loaded query={catalogue} rows={2}>
        {(data) => <Reasons change={change} catalogue={data} />}
      </Loaded>
    </section>
  );
}

function Reasons({ change, catalogue }: { change: Change; catalogue: Catalogue }) {
  const band = bandOf(catalogue, change.environment);
  const near = useQuery(
    // Of every environment: emergency actions may name none, and count in each.
    changesBetweenQuery({
      from: new Date(Date.parse(change.start) - band).toISOString(),
      to: new Date(Date.parse(change.end) + band).toISOString(),
    }),
  );
  // What it was held for may have moved away meanwhile, so it is read by id.
  const blockers = useQueries({ queries: (change.blockers ?? []).map(changeQuery) });
  const freezes = useQuery(freezesQuery);
  const incidents = useQuery(openIncidentsQuery);
  const others = new Map<string, Change>();
  for (const one of near.data?.items ?? []) others.set(one.id, one);
  for (const { data } of blockers) if (data) others.set(data.id, data);

  const { headline, tone, reasons } = explain(change, {
    others: [...others.values()],
    freezes: freezes.data?.items ?? [],
    incidents: incidents.data?.items ?? [],
    catalogue,
    now: serverNow(),
  });
  return (
    <>
      <p className={classes.headline} data-tone={tone}>
        <ToneIcon tone={tone} />
        <span>{headline}</span>
      </p>
      {reasons.length > 0 && (
        <ul className={classes.reasons}>
          {reasons.map((reason) => (
            <ReasonLine key={reason.text} reason={reason} />
          ))}
        </ul>
      )}
    </>
  );
}

/** One reason, with a way to what it is about. */
export function ReasonLine({ reason }: { reason: Why }) {
  const { change, incident } = reason;
  return (
    <li className={classes.reason} data-tone={reason.tone}>
      <ToneIcon tone={reason.tone} />
      <div>
        {reason.text}{" "}
        {change && (
          <span className={classes.about}>
            <ChangeStatusTag status={change.status} />{" "}
            <Link to="/changes/$id" params={{ id: change.id }} className={classes.link}>
              that change
              {change.requester && ` (${change.requester})`}
            </Link>
          </span>
        )}
        {incident && (
          <Link to="/incidents/$id" params={{ id: incident.id }} className={classes.link}>
            that incident
          </Link>
        )}
      </div>
    </li>
  );
}

const icons: Record<WhyTone, typeof IconInfoCircle> = {
  good: IconCircleCheck,
  warning: IconAlertTriangle,
  bad: IconCircleX,
  neutral: IconInfoCircle,
};

function ToneIcon({ tone }: { tone: WhyTone }) {
  const Icon = icons[tone];
  return <Icon size={18} aria-hidden className={classes.icon} />;
}
