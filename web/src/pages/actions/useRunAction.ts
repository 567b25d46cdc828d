import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { api, read } from "../../api/client";
import { keys, type ParamValues } from "../../api/queries";
import type { ActionRun, Plan } from "../../api/types";
import { DialogKey } from "./key";

export type Confirmed = {
  plan: Plan;
  params: ParamValues;
  ttl: string;
  reason: string;
  incident: string | undefined;
};

/** Runs what was planned; the hash binds the confirmation to the plan that was read. */
export function useRunAction(name: string, onAccepted: (run: ActionRun) => void) {
  const queries = useQueryClient();
  const key = useRef(new DialogKey());
  return useMutation({
    mutationFn: ({ plan, params, ttl, reason, incident }: Confirmed) =>
      read(
        api.POST("/api/v1/actions/{name}/run", {
          params: {
            path: { name },
            header: { "Idempotency-Key": key.current.for(`${plan.hash} ${ttl}`) },
          },
          body: {
            params,
            reason,
            plan_hash: plan.hash,
            ...(ttl && { ttl }),
            ...(incident && { incident }),
          },
        }),
      ),
    onSuccess: (run) => {
      for (const queryKey of [keys.runs, keys.incidents, keys.changes]) {
        void queries.invalidateQueries({ queryKey });
      }
      onAccepted(run);
    },
  });
}
