import { useSyncExternalStore } from "react";

// One timer for the whole page, on the full second, and none while nobody looks.
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | undefined;
let now = Date.now();

function tick(): void {
  now = Date.now();
  for (const notify of listeners) notify();
  schedule();
}

function schedule(): void {
  timer = listeners.size > 0 ? setTimeout(tick, 1000 - (Date.now() % 1000)) : undefined;
}

function subscribe(notify: () => void): () => void {
  if (listeners.size === 0) now = Date.now();
  listeners.add(notify);
  if (timer === undefined) schedule();
  return () => {
    listeners.delete(notify);
    if (listeners.size === 0) {
      clearTimeout(timer);
      timer = undefined;
    }
  };
}

/** This machine's time in ms, fresh every second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
