import { type Changed, parseChanged } from "./stream";

/** What the connection tells; called on the page's own thread. */
export type Listener = {
  onOpen(): void;
  onError(): void;
  onChange(changed: Changed): void;
  /** Events were missed: everything may be old. */
  onReset(): void;
};

const firstRetryMs = 2_000;
const lastRetryMs = 30_000;

/**
 * The page's one event stream. EventSource reconnects by itself and says where
 * it stopped (Last-Event-ID); but after an answer that is no stream (a login
 * that ran out, a proxy's error page) it gives up, and this opens a new one,
 * which cannot know what it missed. Neither can one that was cut before its
 * first event: there is no id yet to say where it stopped.
 *
 * @returns a function that closes it
 */
export function connect(url: string, listener: Listener): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let retryMs = firstRetryMs;
  let mayHaveMissed = false;
  let lastId = "";

  function open(): void {
    source = new EventSource(url);
    source.addEventListener("open", () => {
      retryMs = firstRetryMs;
      listener.onOpen();
      if (mayHaveMissed) listener.onReset();
      mayHaveMissed = false;
    });
    source.addEventListener("change", (event) => {
      const { data, lastEventId } = event as MessageEvent;
      lastId = lastEventId;
      const changed = parseChanged(data);
      if (changed) listener.onChange(changed);
      else listener.onReset();
    });
    source.addEventListener("reset", () => listener.onReset());
    source.addEventListener("error", () => {
      listener.onError();
      if (lastId === "") mayHaveMissed = true;
      if (source?.readyState === EventSource.CLOSED) openLater();
    });
  }

  function openLater(): void {
    mayHaveMissed = true;
    lastId = "";
    source?.close();
    timer = setTimeout(open, retryMs);
    retryMs = Math.min(retryMs * 2, lastRetryMs);
  }

  open();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
}
