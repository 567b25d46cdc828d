import { IconMoodCheck } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { openIncidentsQuery } from "../../api/queries";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { TextLink } from "../../ui/TextLink";
import { IncidentRow } from "./IncidentRow";
import { worstFirst } from "./order";

/** Open incidents, the worst and then the newest first. */
export function IncidentsPanel() {
  const incidents = useQuery(openIncidentsQuery);
  const items = incidents.data?.items;
  return (
    <Panel
      title="Open incidents"
      hint={
        items && items.length > 0
          ? `${items.length}${incidents.data?.next ? "+" : ""} open`
          : undefined
      }
      testid="incidents"
    >
      <Loaded query={incidents}>
        {(data) =>
          data.items.length === 0 ? (
            <Empty icon={<IconMoodCheck size={22} />} title="No open incident">
              Alerts that Alertmanager posts to <code>/hooks/alertmanager</code> open one here. To
              try it on a demo: <code>holdfast demo alert</code>. Earlier ones are under{" "}
              <TextLink to="/incidents" search={{ all: true }} inherit>
                all incidents
              </TextLink>
              .
            </Empty>
          ) : (
            <ul className="hf-list">
              {worstFirst(data.items).map((incident) => (
                <IncidentRow key={incident.id} incident={incident} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}
