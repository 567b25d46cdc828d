import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useReducer } from "react";
import { connect } from "./connection";
import { keysOfTopic, nextStream, type StreamState, startOfStream } from "./stream";

const StreamContext = createContext<StreamState | undefined>(undefined);

// A burst of events (one alert storm, one heartbeat of each gateway) is one reading.
const gatherMs = 250;

/** Keeps the one event stream open and turns its events into fresh queries. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [state, dispatch] = useReducer(nextStream, undefined, () => startOfStream(Date.now()));

  useEffect(() => {
    const old = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;

    function refresh(): void {
      timer = undefined;
      const all = old.has("all");
      const first = new Set(old);
      old.clear();
      void queries.invalidateQueries({
        // A plan that is being read does not change under the reader's eyes.
        predicate: ({ queryKey: [key] }) => key !== "plan" && (all || first.has(String(key))),
      });
    }
    function mark(which: readonly string[]): void {
      for (const key of which) old.add(key);
      if (old.size > 0) timer ??= setTimeout(refresh, gatherMs);
    }

    const close = connect("/api/v1/events", {
      onOpen: () => dispatch({ kind: "open", at: Date.now() }),
      onError: () => dispatch({ kind: "error", at: Date.now() }),
      onChange: ({ topic }) => {
        const which = keysOfTopic(topic);
        mark(which === "all" ? ["all"] : which);
      },
      onReset: () => mark(["all"]),
    });
    return () => {
      clearTimeout(timer);
      close();
    };
  }, [queries]);

  return <StreamContext value={state}>{children}</StreamContext>;
}

/** The state of the event stream; undefined outside of LiveProvider. */
export function useStream(): StreamState | undefined {
  return useContext(StreamContext);
}
