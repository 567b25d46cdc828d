import { type QueryCache, useQueryClient } from "@tanstack/react-query";
import { useCallback, useSyncExternalStore } from "react";

/**
 * Time (ms) of the oldest data on the page that could not be read again, or 0
 * while every query succeeds.
 */
export function oldestFailing(cache: QueryCache): number {
  let oldest = 0;
  for (const query of cache.getAll()) {
    const { fetchFailureCount, status, dataUpdatedAt } = query.state;
    const failing = query.isActive() && (fetchFailureCount > 1 || status === "error");
    if (!failing || query.queryKey[0] === "plan" || dataUpdatedAt === 0) continue;
    oldest = oldest === 0 ? dataUpdatedAt : Math.min(oldest, dataUpdatedAt);
  }
  return oldest;
}

export function useOldestFailing(): number {
  const cache = useQueryClient().getQueryCache();
  const subscribe = useCallback((notify: () => void) => cache.subscribe(notify), [cache]);
  return useSyncExternalStore(subscribe, () => oldestFailing(cache));
}
