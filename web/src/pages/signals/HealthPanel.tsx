import { IconActivityHeartbeat } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { signalsQuery } from "../../api/queries";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import classes from "./HealthPanel.module.css";
import { NoMetrics } from "./NoMetrics";
import { worstHealthFirst } from "./order";
import { ServiceCard } from "./ServiceCard";

const sources = { remote: "Prometheus", embedded: "embedded Prometheus", none: "" } as const;

/** How each service does, by its golden signals; the worst first. */
export function HealthPanel() {
  const signals = useQuery(signalsQuery);
  const source = signals.data && sources[signals.data.source];
  return (
    <Panel title="Health" hint={source ? `from the ${source}` : undefined} testid="health">
      <Loaded query={signals} rows={3}>
        {(data) => {
          if (data.source === "none") return <NoMetrics />;
          if (data.items.length === 0) {
            return (
              <Empty icon={<IconActivityHeartbeat size={22} />} title="No service has metrics yet">
                They appear with the first scrape of a gateway or an engine whose series carry the
                labels <code>service</code> and <code>environment</code>.
              </Empty>
            );
          }
          return (
            <ul className={classes.list}>
              {worstHealthFirst(data.items).map((one) => (
                <li key={`${one.service} ${one.environment}`}>
                  <ServiceCard signals={one} />
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Panel>
  );
}
