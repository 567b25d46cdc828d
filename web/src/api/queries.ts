import { queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import { ProblemError, statusOf } from "./problem";
import type { Me } from "./types";

/**
 * Without the event stream every list is read again this often. With it too:
 * the stream only makes things faster, and nothing depends on it.
 */
export const pollMs = 5_000;

/** First element of every query key, and what the event stream invalidates. */
export const keys = {
  me: ["me"],
  incidents: ["incidents"],
  runs: ["runs"],
  gateways: ["gateways"],
  changes: ["changes"],
  freezes: ["freezes"],
  actions: ["actions"],
  plan: ["plan"],
} as const;

/** Who is logged in; null when nobody is. */
export const meQuery = queryOptions({
  queryKey: keys.me,
  queryFn: async ({ signal }): Promise<Me | null> => {
    try {
      return await read(api.GET("/api/v1/me", { signal }));
    } catch (error) {
      if (statusOf(error) === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

export const openIncidentsQuery = queryOptions({
  queryKey: [...keys.incidents, "open"],
  queryFn: ({ signal }) =>
    read(api.GET("/api/v1/incidents", { params: { query: { open: true, limit: 50 } }, signal })),
  refetchInterval: pollMs,
});

export const incidentQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.incidents, id],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/incidents/{id}", { params: { path: { id } }, signal })),
    refetchInterval: pollMs,
    retry: retryUnlessRefused,
  });

// An incident has thousands of entries at most; the limit ends a loop of cursors.
const timelinePages = 20;

export const timelineQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.incidents, id, "timeline"],
    queryFn: async ({ signal }) => {
      const entries = [];
      let cursor: string | undefined;
      for (let page = 0; page < timelinePages; page++) {
        const query = cursor ? { limit: 200, cursor } : { limit: 200 };
        const answer = await read(
          api.GET("/api/v1/incidents/{id}/timeline", {
            params: { path: { id }, query },
            signal,
          }),
        );
        entries.push(...answer.items);
        cursor = answer.next;
        if (!cursor) break;
      }
      return entries;
    },
    refetchInterval: pollMs,
    retry: retryUnlessRefused,
  });

export const liveRunsQuery = queryOptions({
  queryKey: [...keys.runs, "live"],
  queryFn: ({ signal }) =>
    read(api.GET("/api/v1/action-runs", { params: { query: { live: true, limit: 100 } }, signal })),
  refetchInterval: pollMs,
});

export const gatewaysQuery = queryOptions({
  queryKey: keys.gateways,
  queryFn: ({ signal }) => read(api.GET("/api/v1/gateways", { signal })),
  refetchInterval: pollMs,
});

export const activeChangesQuery = queryOptions({
  queryKey: [...keys.changes, "active"],
  queryFn: ({ signal }) =>
    read(api.GET("/api/v1/changes", { params: { query: { active: true, limit: 100 } }, signal })),
  refetchInterval: pollMs,
});

export const changeQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.changes, id],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/changes/{id}", { params: { path: { id } }, signal })),
    refetchInterval: pollMs,
    retry: retryUnlessRefused,
  });

export const freezesQuery = queryOptions({
  queryKey: keys.freezes,
  queryFn: ({ signal }) => read(api.GET("/api/v1/freezes", { signal })),
  refetchInterval: pollMs,
});

/** What can be done; it follows the policy slowly, so it is not polled. */
export const actionsQuery = queryOptions({
  queryKey: keys.actions,
  queryFn: ({ signal }) => read(api.GET("/api/v1/actions", { signal })),
  staleTime: 30_000,
});

export type ParamValues = Record<string, string | number>;

/**
 * A dry run. It is read once for each set of parameters: a plan that changed
 * under the reader's eyes would be confirmed unread.
 */
export const planQuery = (name: string, params: ParamValues, ttl: string) =>
  queryOptions({
    queryKey: [...keys.plan, name, params, ttl],
    queryFn: ({ signal }) =>
      read(
        api.POST("/api/v1/actions/{name}/plan", {
          params: { path: { name } },
          body: ttl ? { params, ttl } : { params },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: retryUnlessRefused,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });

/** A refusal stays one when asked again; only silence is worth another try. */
export function retryUnlessRefused(failures: number, error: unknown): boolean {
  if (error instanceof ProblemError && error.status >= 400 && error.status < 500) return false;
  return failures < 2;
}
