import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { serverNow } from "../format/clock";
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
  revisions: ["revisions"],
  changes: ["changes"],
  freezes: ["freezes"],
  actions: ["actions"],
  plan: ["plan"],
  signals: ["signals"],
  ranges: ["ranges"],
  rules: ["rules"],
  targets: ["targets"],
  runbooks: ["runbooks"],
  runbookRuns: ["runbook-runs"],
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

/** Incidents page by page; by severity they are picked out in the console. */
export const incidentPagesQuery = (all: boolean) =>
  infiniteQueryOptions({
    queryKey: [...keys.incidents, "pages", all],
    queryFn: ({ signal, pageParam }) => {
      const page = pageParam ? { limit: 50, cursor: pageParam } : { limit: 50 };
      const query = all ? page : { ...page, open: true };
      return read(api.GET("/api/v1/incidents", { params: { query }, signal }));
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next || undefined,
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

/** How the policy came to be what it is, newest first, page by page. */
export const revisionPagesQuery = infiniteQueryOptions({
  queryKey: keys.revisions,
  queryFn: ({ signal, pageParam }) => {
    const query = pageParam ? { limit: 30, cursor: pageParam } : { limit: 30 };
    return read(api.GET("/api/v1/policy/revisions", { params: { query }, signal }));
  },
  initialPageParam: "",
  getNextPageParam: (page) => page.next || undefined,
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

/** Changes of one place around a time, for the marks of a chart and for what comes next. */
export const changesBetweenQuery = (where: {
  service?: string | undefined;
  environment?: string | undefined;
  from: string;
  to: string;
}) =>
  queryOptions({
    queryKey: [...keys.changes, "between", where],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/changes", {
          params: {
            query: {
              from: where.from,
              to: where.to,
              limit: 200,
              ...(where.service && { service: where.service }),
              ...(where.environment && { environment: where.environment }),
            },
          },
          signal,
        }),
      ),
    refetchInterval: pollMs,
    placeholderData: keepPreviousData,
  });

// Sparklines have a point every half minute or so; reading them costs the server more than a list.
const signalsPollMs = 10_000;

export const signalsQuery = queryOptions({
  queryKey: keys.signals,
  queryFn: ({ signal }) => read(api.GET("/api/v1/signals", { signal })),
  refetchInterval: signalsPollMs,
});

/** The golden signals of one service, in one environment or in each, for the charts of an incident. */
export const serviceSignalsQuery = (service: string, environment: string | undefined) =>
  queryOptions({
    queryKey: [...keys.signals, service, environment],
    queryFn: ({ signal }) => {
      const query = environment ? { service, environment } : { service };
      return read(api.GET("/api/v1/signals", { params: { query }, signal }));
    },
    refetchInterval: 6 * signalsPollMs,
  });

export type RangeAsked = {
  query: string;
  /** RFC 3339. */
  start: string;
  /** RFC 3339; left out, the range reaches to now and is read again and again. */
  end?: string;
  stepMs: number;
};

/** PromQL over a time range. */
export const rangeQuery = (asked: RangeAsked) =>
  queryOptions({
    queryKey: [...keys.ranges, asked],
    queryFn: ({ signal }) => {
      const { query, start, stepMs } = asked;
      // Times that the grid of the chart has; the newest one is not older than a step.
      const end = asked.end ?? new Date(Math.floor(serverNow() / stepMs) * stepMs).toISOString();
      return read(
        api.GET("/api/v1/query_range", {
          params: { query: { query, start, end, step: `${stepMs / 1000}s` } },
          signal,
        }),
      );
    },
    refetchInterval: asked.end ? false : Math.max(pollMs, asked.stepMs),
    // Another width is another step; the curve of before stays until the new one is there.
    placeholderData: keepPreviousData,
    retry: retryUnlessRefused,
  });

export const rulesQuery = queryOptions({
  queryKey: keys.rules,
  queryFn: ({ signal }) => read(api.GET("/api/v1/rules", { signal })),
  refetchInterval: pollMs,
});

export const targetsQuery = queryOptions({
  queryKey: keys.targets,
  queryFn: ({ signal }) => read(api.GET("/api/v1/targets", { signal })),
  refetchInterval: pollMs,
});

/** The runbooks there are; they change with a release, so they are not polled. */
export const runbooksQuery = queryOptions({
  queryKey: keys.runbooks,
  queryFn: ({ signal }) => read(api.GET("/api/v1/runbooks", { signal })),
  staleTime: 60_000,
});

export const liveRunbookRunsQuery = queryOptions({
  queryKey: [...keys.runbookRuns, "live"],
  queryFn: ({ signal }) =>
    read(
      api.GET("/api/v1/runbook-runs", { params: { query: { live: true, limit: 100 } }, signal }),
    ),
  refetchInterval: pollMs,
});

export const incidentRunbookRunsQuery = (incident: string) =>
  queryOptions({
    queryKey: [...keys.runbookRuns, "incident", incident],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runbook-runs", { params: { query: { incident, limit: 50 } }, signal })),
    refetchInterval: pollMs,
  });

export const runbookRunQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.runbookRuns, id],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runbook-runs/{id}", { params: { path: { id } }, signal })),
    refetchInterval: pollMs,
    retry: retryUnlessRefused,
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
