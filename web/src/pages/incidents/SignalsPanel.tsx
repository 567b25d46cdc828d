import { Skeleton } from "@mantine/core";
import { IconChartLine } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { serviceSignalsQuery } from "../../api/queries";
import type { IncidentDetail } from "../../api/types";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { NoMetrics } from "../signals/NoMetrics";

// Charts are a third of the console's weight, and most pages have none.
const SignalCharts = lazy(() => import("./SignalCharts"));

/** The golden signals of what the incident is about, around the time of the incident. */
export function SignalsPanel({ detail }: { detail: IncidentDetail }) {
  const { service, environment } = detail.incident;
  if (!service) {
    return (
      <Panel title="Golden signals" testid="signals">
        <Empty icon={<IconChartLine size={22} />} title="The alerts name no service">
          Give alert rules the label <code>service</code>, and the signals of that service are drawn
          here.
        </Empty>
      </Panel>
    );
  }
  return <OfService detail={detail} service={service} environment={environment} />;
}

function OfService(props: {
  detail: IncidentDetail;
  service: string;
  environment: string | undefined;
}) {
  const { detail, service, environment } = props;
  const signals = useQuery(serviceSignalsQuery(service, environment));
  return (
    <Panel
      title="Golden signals"
      hint={[service, environment].filter(Boolean).join(" · ")}
      testid="signals"
    >
      <Loaded query={signals} rows={4}>
        {({ items, source }) => {
          if (source === "none") return <NoMetrics />;
          if (items.every((one) => one.signals.length === 0)) {
            return (
              <Empty icon={<IconChartLine size={22} />} title={`No metrics of ${service}`}>
                Nothing that is scraped carries this service in its labels. See the scrape targets
                under Signals.
              </Empty>
            );
          }
          return (
            <Suspense fallback={<Skeleton height={320} />}>
              <SignalCharts detail={detail} services={items} />
            </Suspense>
          );
        }}
      </Loaded>
    </Panel>
  );
}
