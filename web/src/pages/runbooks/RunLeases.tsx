import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import type { ActionRun, RunbookRun } from "../../api/types";
import { plural } from "../../format/number";
import { Panel } from "../../ui/Panel";
import { RevertDialog } from "../runs/RevertDialog";
import { isLive, RunRow } from "../runs/RunRow";
import { actionRunQuery } from "./queries";

/** What the run holds in production right now, and the way back; nothing while it holds nothing. */
export function RunLeases({ run }: { run: RunbookRun }) {
  const ids = run.steps.flatMap(({ action_run: id }) => (id ? [id] : []));
  const runs = useQueries({ queries: ids.map(actionRunQuery) });
  const [reverting, setReverting] = useState<ActionRun>();
  const live = runs.flatMap(({ data }) => (data && isLive(data) ? [data] : []));
  return (
    <>
      {live.length > 0 && (
        <Panel
          title="Leases of this run"
          hint={plural(live.length, "lease")}
          testid="runbook-leases"
        >
          <ul className="hf-list">
            {live.map((one) => (
              <RunRow key={one.id} run={one} onRevert={setReverting} />
            ))}
          </ul>
        </Panel>
      )}
      <RevertDialog run={reverting} onClose={() => setReverting(undefined)} />
    </>
  );
}
