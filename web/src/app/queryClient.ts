import { QueryCache, QueryClient } from "@tanstack/react-query";
import { statusOf } from "../api/problem";
import { meQuery } from "../api/queries";

/** The cache of what the server said. A session that ended anywhere ends everywhere. */
export function newQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (statusOf(error) === 401) client.setQueryData(meQuery.queryKey, null);
      },
    }),
    defaultOptions: {
      queries: {
        retry: (failures, error) => statusOf(error) !== 401 && failures < 2,
        retryDelay: 1_000,
        // The browser's idea of being online says nothing about holdfast.
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
  return client;
}
