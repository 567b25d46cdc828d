import createClient, { type Middleware } from "openapi-fetch";
import { noteServerDate } from "../format/clock";
import { noAnswer, problemFromAnswer } from "./problem";
import type { paths } from "./schema.gen";

// Longer than any answer should take, shorter than a person's patience.
const timeoutMs = 15_000;

/** Refusals become exceptions, so that a query or mutation sees one kind of failure. */
const refusals: Middleware = {
  async onResponse({ response }) {
    noteServerDate(response.headers.get("Date"), Date.now());
    if (response.ok) return;
    const body: unknown = await response.json().catch(() => undefined);
    throw problemFromAnswer(response.status, body);
  },
};

/** fetch with a time limit; a failure of the network is told apart from faults of the console. */
async function send(request: Request): Promise<Response> {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    // Looked up at each call, so that tests can put their own in its place.
    return await globalThis.fetch(new Request(request, { signal }));
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw noAnswer();
  }
}

/** The typed API client: same origin, session cookie, JSON. */
export const api = createClient<paths>({
  baseUrl: globalThis.location?.origin ?? "",
  credentials: "same-origin",
  fetch: send,
  // The server wants JSON on unsafe methods, also where there is no body.
  headers: { "Content-Type": "application/json" },
});

api.use(refusals);

/** Unwraps an answer whose refusals were thrown already. */
export async function read<T>(answer: Promise<{ data?: T }>): Promise<T> {
  const { data } = await answer;
  if (data === undefined) throw problemFromAnswer(502, undefined);
  return data;
}
