import { queryOptions } from "@tanstack/react-query";
import { api, read } from "../../api/client";
import { keys, pollMs, retryUnlessRefused } from "../../api/queries";

export const runbookRunsQuery = queryOptions({
  queryKey: [...keys.runbookRuns, "newest"],
  queryFn: ({ signal }) =>
    read(api.GET("/api/v1/runbook-runs", { params: { query: { limit: 20 } }, signal })),
  refetchInterval: pollMs,
});

/** One action run, for the steps that started it. */
export const actionRunQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.runs, id],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/action-runs/{id}", { params: { path: { id } }, signal })),
    refetchInterval: pollMs,
    retry: retryUnlessRefused,
  });

/** How far back the small chart of a criterion looks. */
export const seenMs = 10 * 60_000;

/** What a criterion's query gave in the last ten minutes; the newest points are its live values. */
export const criterionQuery = (query: string) =>
  queryOptions({
    queryKey: [...keys.ranges, "criterion", query],
    queryFn: ({ signal }) => {
      const end = new Date();
      const start = new Date(end.getTime() - seenMs).toISOString();
      return read(
        api.GET("/api/v1/query_range", {
          params: { query: { query, start, end: end.toISOString(), step: "10s" } },
          signal,
        }),
      );
    },
    refetchInterval: pollMs,
    retry: retryUnlessRefused,
  });
