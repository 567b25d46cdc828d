import { SegmentedControl } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { changesBetweenQuery } from "../../api/queries";
import type { IncidentDetail, ServiceSignals } from "../../api/types";
import { marksOf, neighbourhood } from "../../charts/marks";
import { type ChartRange, incidentRange } from "../../charts/range";
import { serverNow } from "../../format/clock";
import { useNow } from "../../ui/useNow";
import { servicesQuery } from "../changes/queries";
import { MarkList } from "./MarkList";
import { SignalChart } from "./SignalChart";
import classes from "./SignalCharts.module.css";
import { SignalTable } from "./SignalTable";

type Props = { detail: IncidentDetail; services: readonly ServiceSignals[] };

/** A chart for each golden signal with what happened drawn in, or the same as a table. */
export default function SignalCharts({ detail, services }: Props) {
  const [view, setView] = useState("charts");
  const { ref, width } = useElementSize<HTMLDivElement>();
  const range = useRange(detail, width);
  const changes = useNeighbours(detail, range);
  const marks = useMemo(() => marksOf(detail, changes, range), [detail, changes, range]);
  const several = services.length > 1;
  const charts = services.flatMap(({ environment, signals }) =>
    signals.map((signal) => ({
      key: `${environment} ${signal.name}`,
      title: several ? `${signal.title}, ${environment}` : signal.title,
      signal,
    })),
  );
  return (
    <div ref={ref} className={classes.root}>
      <SegmentedControl
        aria-label="Show signals as"
        size="xs"
        value={view}
        onChange={setView}
        data={[
          { value: "charts", label: "Charts" },
          { value: "table", label: "Table" },
        ]}
        className={classes.view}
      />
      {view === "table" ? (
        <SignalTable charts={charts} range={range} opened={Date.parse(detail.incident.opened_at)} />
      ) : (
        <div className={classes.charts}>
          {charts.map(({ key, title, signal }) => (
            <SignalChart
              key={key}
              title={title}
              signal={signal}
              range={range}
              marks={marks}
              opened={Date.parse(detail.incident.opened_at)}
              sync={`incident ${detail.incident.id}`}
            />
          ))}
        </div>
      )}
      <MarkList marks={marks} />
    </div>
  );
}

/** The range of the charts; it moves on with the time, one step after the other. */
function useRange({ incident }: IncidentDetail, width: number): ChartRange {
  useNow();
  const { start, end, stepMs, open } = incidentRange(
    Date.parse(incident.opened_at),
    incident.resolved_at ? Date.parse(incident.resolved_at) : undefined,
    serverNow(),
    width || 600,
  );
  return useMemo(() => ({ start, end, stepMs, open }), [start, end, stepMs, open]);
}

const noChanges: never[] = [];

/** Changes of the service and its neighbours in the same environment, within the range. */
function useNeighbours({ incident }: IncidentDetail, range: ChartRange) {
  const { service, environment } = incident;
  const catalogue = useQuery(servicesQuery).data;
  const from = new Date(range.start).toISOString();
  // The end of an open range moves; as a part of the question it would ask anew each second.
  const to = new Date(range.open ? range.start + openSpanMs : range.end).toISOString();
  const changes = useQuery(changesBetweenQuery({ environment, from, to })).data;
  return useMemo(() => {
    if (!changes || !service) return noChanges;
    const near = neighbourhood(catalogue?.services ?? [], service);
    return changes.items.filter((change) => near.has(change.service));
  }, [changes, catalogue, service]);
}

// Longer than an incident; changes that begin after the range are left out of the marks.
const openSpanMs = 14 * 24 * 60 * 60_000;
