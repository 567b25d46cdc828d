import { IconShieldCheck } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { liveRunsQuery } from "../../api/queries";
import type { ActionRun } from "../../api/types";
import { plural } from "../../format/number";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { RevertDialog } from "./RevertDialog";
import { RunRow } from "./RunRow";

/** Every lease that holds, the one that ends first at the top. */
export function LeasesPanel() {
  const runs = useQuery(liveRunsQuery);
  const [reverting, setReverting] = useState<ActionRun>();
  const items = runs.data?.items;
  return (
    <Panel
      title="Active leases"
      hint={items && items.length > 0 ? plural(items.length, "lease") : undefined}
      testid="leases"
    >
      <Loaded query={runs}>
        {(data) =>
          data.items.length === 0 ? (
            <Empty icon={<IconShieldCheck size={22} />} title="No action is in force">
              Gateways run the base policy. Open an incident to see the actions it suggests.
            </Empty>
          ) : (
            <ul className="hf-list">
              {soonestFirst(data.items).map((run) => (
                <RunRow key={run.id} run={run} onRevert={setReverting} linkIncident />
              ))}
            </ul>
          )
        }
      </Loaded>
      <RevertDialog run={reverting} onClose={() => setReverting(undefined)} />
    </Panel>
  );
}

export function soonestFirst(runs: ActionRun[]): ActionRun[] {
  const end = (run: ActionRun) =>
    run.expires_at ? Date.parse(run.expires_at) : Number.POSITIVE_INFINITY;
  return [...runs].sort((a, b) => compare(end(a), end(b)) || a.id.localeCompare(b.id));
}

// Infinity minus Infinity is no number.
function compare(a: number, b: number): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
