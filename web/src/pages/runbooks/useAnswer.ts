import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, read } from "../../api/client";
import { keys, runbookRunQuery } from "../../api/queries";
import type { RunbookRun } from "../../api/types";

export type Given = { step: string; attempt: number; answer: string; note?: string };

/** Answers what a step asks. It is bound to the attempt that was on the screen. */
export function useAnswer(run: string) {
  const take = useTakeRun();
  return useMutation({
    mutationFn: ({ step, attempt, answer, note }: Given) =>
      read(
        api.POST("/api/v1/runbook-runs/{id}/answer", {
          params: { path: { id: run } },
          body: { step, attempt, answer, ...(note && { note }) },
        }),
      ),
    onSuccess: take,
  });
}

export function useCancelRunbook(run: string) {
  const take = useTakeRun();
  return useMutation({
    mutationFn: () =>
      read(api.POST("/api/v1/runbook-runs/{id}/cancel", { params: { path: { id: run } } })),
    onSuccess: take,
  });
}

/** Shows a run as it was answered, and reads what it may have moved. */
function useTakeRun(): (run: RunbookRun) => void {
  const queries = useQueryClient();
  return (run) => {
    queries.setQueryData(runbookRunQuery(run.id).queryKey, run);
    for (const queryKey of [keys.runbookRuns, keys.runs, keys.incidents, keys.changes]) {
      void queries.invalidateQueries({ queryKey });
    }
  };
}
