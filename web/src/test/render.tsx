import { createMemoryHistory } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import { vi } from "vitest";
import type { Me } from "../api/types";
import { App } from "../app/App";
import { newQueryClient } from "../app/queryClient";
import { newRouter } from "../app/router";

export type Answer = { status?: number; body?: unknown };
export type Sent = { method: string; path: string; headers: Headers; body: unknown };
type Answers = Record<string, Answer | ((sent: Sent) => Answer)>;

export const alice: Me = {
  kind: "person",
  id: "p1",
  handle: "alice",
  name: "Alice",
  role: "responder",
  slack_linked: false,
};

const empty: Answers = {
  "GET /api/v1/me": { body: alice },
  "GET /api/v1/incidents": { body: { items: [] } },
  "GET /api/v1/action-runs": { body: { items: [] } },
  "GET /api/v1/gateways": { body: { items: [], revision: 1, lineage: "l" } },
  "GET /api/v1/changes": { body: { items: [] } },
  "GET /api/v1/freezes": { body: { items: [] } },
  "GET /api/v1/actions": { body: { items: [] } },
  "GET /api/v1/signals": { body: { items: [], source: "none" } },
  "GET /api/v1/runbooks": { body: { items: [] } },
  "GET /api/v1/runbook-runs": { body: { items: [] } },
};

/** An event stream that a test speaks through. */
export class FakeEventSource extends EventTarget {
  static readonly CLOSED = 2;
  static all: FakeEventSource[] = [];
  readyState = 1;
  readonly url: string;

  constructor(url: string) {
    super();
    this.url = url;
    FakeEventSource.all.push(this);
  }

  say(type: string, data?: unknown, lastEventId = ""): void {
    const text = data === undefined ? "" : JSON.stringify(data);
    this.dispatchEvent(new MessageEvent(type, { data: text, lastEventId }));
  }

  close(): void {
    this.readyState = FakeEventSource.CLOSED;
  }
}

/** Opens the console at a path, with a server that answers as told and a record of what it was asked. */
export function open(path: string, answers: Answers = {}) {
  const sent: Sent[] = [];
  const table = { ...empty, ...answers };
  FakeEventSource.all = [];
  vi.stubGlobal("EventSource", FakeEventSource);
  vi.stubGlobal("fetch", async (request: Request) => {
    const text = await request.text();
    const one: Sent = {
      method: request.method,
      path: new URL(request.url).pathname,
      headers: request.headers,
      body: text ? JSON.parse(text) : undefined,
    };
    sent.push(one);
    const found = table[`${one.method} ${one.path}`];
    const answer = typeof found === "function" ? found(one) : found;
    const { status, body } = answer ?? {
      status: 404,
      body: { type: "/problems/not-found", title: "Not found", status: 404 },
    };
    return new Response(body === undefined ? null : JSON.stringify(body), {
      status: status ?? (body === undefined ? 204 : 200),
      headers: { "Content-Type": "application/json" },
    });
  });
  const router = newRouter(createMemoryHistory({ initialEntries: [path] }));
  render(<App router={router} queries={newQueryClient()} />);
  const count = (method: string, where: string) =>
    sent.filter((one) => one.method === method && one.path === where).length;
  return { sent, count, router };
}
