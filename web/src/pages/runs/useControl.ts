import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, read } from "../../api/client";
import { actionsQuery, keys } from "../../api/queries";
import type { ActionRun, Role } from "../../api/types";

/** Revert and renew of runs, and which role they take. */
export function useRevert() {
  const refresh = useRefreshRuns();
  return useMutation({
    mutationFn: (run: ActionRun) =>
      read(api.POST("/api/v1/action-runs/{id}/revert", { params: { path: { id: run.id } } })),
    onSettled: refresh,
  });
}

export function useRenew() {
  const refresh = useRefreshRuns();
  return useMutation({
    mutationFn: ({ run, ttl }: { run: ActionRun; ttl: string }) =>
      read(
        api.POST("/api/v1/action-runs/{id}/renew", {
          params: { path: { id: run.id } },
          body: { ttl },
        }),
      ),
    onSettled: refresh,
  });
}

/** The role that an action of this name takes; responder while that is not known. */
export function useActionRole(name: string): Role {
  const specs = useQuery(actionsQuery);
  return specs.data?.items.find((spec) => spec.name === name)?.role ?? "responder";
}

function useRefreshRuns(): () => void {
  const queries = useQueryClient();
  return () => {
    for (const queryKey of [keys.runs, keys.incidents, keys.gateways, keys.changes]) {
      void queries.invalidateQueries({ queryKey });
    }
  };
}
