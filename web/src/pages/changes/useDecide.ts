import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, read } from "../../api/client";
import { keys } from "../../api/queries";
import type { Change } from "../../api/types";

export type Decision = { change: Change; verdict: "confirm" | "reject" };

/** Decides about a held change. A confirmation is bound to what was on the screen. */
export function useDecide() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ change, verdict }: Decision) => {
      const params = { path: { id: change.id } };
      if (verdict === "reject") {
        return read(api.POST("/api/v1/changes/{id}/reject", { params }));
      }
      const body = change.params_hash ? { hash: change.params_hash } : {};
      return read(api.POST("/api/v1/changes/{id}/confirm", { params, body }));
    },
    onSettled: () => queries.invalidateQueries({ queryKey: keys.changes }),
  });
}
