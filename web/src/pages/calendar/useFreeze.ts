import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, read } from "../../api/client";
import { keys } from "../../api/queries";
import type { components } from "../../api/schema.gen";

export type FreezeRequest = components["schemas"]["FreezeRequest"];

export function useCreateFreeze() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: (body: FreezeRequest) => read(api.POST("/api/v1/freezes", { body })),
    onSettled: refresh,
  });
}

export function useLiftFreeze() {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: (id: string) => api.DELETE("/api/v1/freezes/{id}", { params: { path: { id } } }),
    onSettled: refresh,
  });
}

function useRefresh(): () => void {
  const queries = useQueryClient();
  return () => {
    for (const queryKey of [keys.freezes, keys.changes]) {
      void queries.invalidateQueries({ queryKey });
    }
  };
}
