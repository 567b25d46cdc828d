import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { alice, FakeEventSource, open } from "../test/render";

const incident = {
  id: "i1",
  number: 7,
  title: "Chat is slow",
  severity: "critical",
  status: "open",
  firing: 2,
  resolved: 0,
  truncated: 0,
  opened_at: "2026-11-30T06:00:00Z",
};
const trip = {
  name: "trip_breaker",
  title: "Trip breaker",
  summary: "Refuse calls to a dependency.",
  role: "responder",
  dangerous: false,
  default_ttl: "15m0s",
  max_ttl: "1h0m0s",
  params: [{ name: "dependency", kind: "dependency", required: true, help: "", choices: ["llm"] }],
};
const plan = {
  action: "trip_breaker",
  params: { dependency: "llm" },
  hash: "h1",
  summary: "Trip the breaker of llm",
  layers: [],
  diff: [{ path: "breakers.llm.forced", before: null, after: "open" }],
  blast: { share: null, requests: 0, routes: ["/v1/chat"], gateways: ["gw-1"] },
  warnings: ["gw-2 is not heard."],
  service: "chat",
  ttl_seconds: 900,
  leased: [],
};
const run = {
  id: "r1",
  action: "trip_breaker",
  title: "Trip breaker",
  params: {},
  summary: "Trip the breaker of llm",
  requester: "Alice",
  reason: "it hangs",
  status: "active",
  accepted_at: "2026-11-30T06:00:00Z",
  enforced_at: "2026-11-30T06:00:01Z",
  expires_at: new Date(Date.now() + 600_000).toISOString(),
  missing: ["gw-2"],
};
const incidentAnswers = {
  "GET /api/v1/actions": { body: { items: [trip] } },
  "GET /api/v1/incidents/i1": {
    body: {
      incident,
      alerts: [],
      runs: [],
      runbooks: [],
      suggestions: [
        {
          action: "trip_breaker",
          title: "Trip breaker of llm",
          params: { dependency: "llm" },
          why: "it hangs",
        },
      ],
    },
  },
  "GET /api/v1/incidents/i1/timeline": { body: { items: [] } },
  "POST /api/v1/actions/trip_breaker/plan": { body: plan },
};

it("says how to get a login link when nobody is logged in", async () => {
  open("/", {
    "GET /api/v1/me": {
      status: 401,
      body: { type: "/problems/not-authenticated", title: "Not authenticated", status: 401 },
    },
  });
  expect(await screen.findByText("holdfast login-link --person HANDLE")).toBeTruthy();
});

it("does nothing with a login code until Continue is pressed", async () => {
  const { sent, router } = open("/login?code=0123456789abcdef", {
    "POST /api/v1/session": { body: alice },
  });
  const button = await screen.findByRole("button", { name: "Continue" });
  expect(sent).toEqual([]);
  await userEvent.click(button);
  await waitFor(() => expect(router.state.location.pathname).toBe("/"));
  expect(sent[0]?.body).toEqual({ code: "0123456789abcdef" });
  expect(sent[0]?.headers.get("Content-Type")).toBe("application/json");
});

it("shows why a login failed", async () => {
  open("/login?code=0123456789abcdef", {
    "POST /api/v1/session": {
      status: 410,
      body: {
        type: "/problems/link-used",
        title: "This one-time link was used or has expired",
        status: 410,
        errors: [{ path: "code", message: "used at 06:00" }],
      },
    },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Continue" }));
  const problem = await screen.findByTestId("problem");
  expect(problem.textContent).toContain("This one-time link was used or has expired");
  expect(problem.textContent).toContain("used at 06:00");
});

it("says what to do where nothing is there", async () => {
  open("/");
  expect(await screen.findByText("No open incident")).toBeTruthy();
  expect(await screen.findByText("No action is in force")).toBeTruthy();
  expect(await screen.findByText("No gateway has connected yet")).toBeTruthy();
  expect(await screen.findByText("No change now or upcoming")).toBeTruthy();
});

it("shows a measurement that is missing as no data", async () => {
  const gateway = {
    name: "gw-1",
    state: "live",
    instance: "i",
    version: "1",
    lineage: "l",
    revision: 1,
    result: "applied",
    apply_seconds: 0.001,
    last_heard_at: "2026-11-30T06:00:00Z",
    breakers: {},
    in_flight: 0,
    active_overrides: [],
    requests_per_second: null,
    error_ratio: null,
  };
  open("/", {
    "GET /api/v1/gateways": { body: { items: [gateway], revision: 1, lineage: "l" } },
  });
  const row = await screen.findByTestId("gateway");
  expect(within(row).getAllByText("no data")).toHaveLength(2);
});

it("runs a plan once, however often the button is pressed", async () => {
  const { sent } = open("/incidents/i1", {
    ...incidentAnswers,
    "POST /api/v1/actions/trip_breaker/run": { status: 202, body: { ...run, status: "accepted" } },
  });
  await userEvent.click(await screen.findByTestId("suggestion"));
  expect(await screen.findByText("breakers.llm.forced")).toBeTruthy();
  expect(screen.getByText("gw-2 is not heard.")).toBeTruthy();
  expect(screen.getByText("no data on traffic in the last minute")).toBeTruthy();

  const confirm = () => screen.getByTestId("confirm-action");
  await userEvent.click(confirm());
  expect(await screen.findByText(/A reason is needed/)).toBeTruthy();
  await userEvent.type(screen.getByRole("textbox", { name: /Reason/ }), "it hangs");
  await userEvent.dblClick(confirm());

  await waitFor(() => expect(screen.queryByTestId("confirm-action")).toBeNull());
  const runs = sent.filter((one) => one.path.endsWith("/run"));
  expect(new Set(runs.map((one) => one.headers.get("Idempotency-Key"))).size).toBe(1);
  expect(runs[0]?.headers.get("Idempotency-Key")).toMatch(/^[0-9a-f-]{36}$/);
  expect(runs[0]?.body).toEqual({
    params: { dependency: "llm" },
    reason: "it hangs",
    plan_hash: "h1",
    ttl: "15m",
    incident: "i1",
  });
});

it("keeps a dialog and what was typed through a refresh, and shows a refusal in it", async () => {
  const { count } = open("/incidents/i1", {
    ...incidentAnswers,
    "POST /api/v1/actions/trip_breaker/run": {
      status: 409,
      body: { type: "/problems/outdated", title: "The plan is out of date", status: 409 },
    },
  });
  await userEvent.click(await screen.findByTestId("suggestion"));
  await screen.findByText("breakers.llm.forced");
  await userEvent.type(screen.getByRole("textbox", { name: /Reason/ }), "half a rea");

  const before = count("GET", "/api/v1/incidents/i1");
  act(() => FakeEventSource.all[0]?.say("change", { topic: "incidents", id: "i1" }));
  await waitFor(() => expect(count("GET", "/api/v1/incidents/i1")).toBeGreaterThan(before));
  expect(screen.getByDisplayValue("half a rea")).toBeTruthy();

  await userEvent.click(screen.getByTestId("confirm-action"));
  expect((await screen.findByTestId("problem")).textContent).toContain("The plan is out of date");
  await waitFor(() => expect(count("POST", "/api/v1/actions/trip_breaker/plan")).toBe(2));
  expect(screen.getByDisplayValue("half a rea")).toBeTruthy();
});

it("disables what a role may not do, and says why", async () => {
  const { count } = open("/", {
    "GET /api/v1/me": { body: { ...alice, role: "viewer" } },
    "GET /api/v1/action-runs": { body: { items: [run] } },
  });
  const revert = await screen.findByTestId("revert");
  expect(revert.getAttribute("aria-disabled")).toBe("true");
  expect(revert.textContent).toContain("needs the role responder; you are viewer");
  await userEvent.click(revert);
  expect(screen.queryByTestId("confirm-revert")).toBeNull();
  expect(count("POST", "/api/v1/action-runs/r1/revert")).toBe(0);
});

it("counts a lease down, names who is missing and takes it back", async () => {
  const { count } = open("/", {
    "GET /api/v1/action-runs": { body: { items: [run] } },
    "POST /api/v1/action-runs/r1/revert": { body: { ...run, status: "reverting" } },
  });
  expect((await screen.findByTestId("countdown")).textContent).toMatch(/^(10:00|9:\d\d)$/);
  expect(screen.getByText("missing: gw-2")).toBeTruthy();
  await userEvent.click(screen.getByTestId("revert"));
  await userEvent.click(await screen.findByTestId("confirm-revert"));
  await waitFor(() => expect(count("POST", "/api/v1/action-runs/r1/revert")).toBe(1));
});

it("confirms a held change with the hash that was on the screen", async () => {
  const held = {
    id: "c1",
    service: "chat",
    environment: "production",
    kind: "deploy",
    status: "held",
    start: "2026-11-30T06:00:00Z",
    end: "2026-11-30T06:30:00Z",
    run_id: "r",
    requester: "Bob",
    params_hash: "abc",
    created_at: "2026-11-30T05:00:00Z",
  };
  const { sent } = open("/changes/c1", {
    "GET /api/v1/me": { body: { ...alice, role: "approver" } },
    "GET /api/v1/changes": { body: { items: [held] } },
    "GET /api/v1/changes/c1": { body: held },
    "POST /api/v1/changes/c1/confirm": { body: { ...held, status: "claimed" } },
  });
  const row = await screen.findByTestId("change");
  expect(row.getAttribute("aria-current")).toBe("true");
  await userEvent.click(within(row).getByRole("button", { name: /Confirm/ }));
  await waitFor(() => {
    const confirm = sent.find((one) => one.path.endsWith("/confirm"));
    expect(confirm?.body).toEqual({ hash: "abc" });
  });
});

it("keeps one event stream and reads everything again after a reset", async () => {
  const { count } = open("/");
  await screen.findByText("No open incident");
  expect(FakeEventSource.all.map((source) => source.url)).toEqual(["/api/v1/events"]);
  const before = count("GET", "/api/v1/gateways");
  act(() => FakeEventSource.all[0]?.say("reset"));
  await waitFor(() => expect(count("GET", "/api/v1/gateways")).toBeGreaterThan(before));
});

it("goes to the login text when the session ends meanwhile", async () => {
  let loggedIn = true;
  const gone = {
    status: 401,
    body: { type: "/problems/not-authenticated", title: "Not authenticated", status: 401 },
  };
  open("/", {
    "GET /api/v1/freezes": () => (loggedIn ? { body: { items: [] } } : gone),
  });
  await screen.findByText("No open incident");
  loggedIn = false;
  act(() => FakeEventSource.all[0]?.say("change", { topic: "freezes", id: "f" }));
  expect(await screen.findByText("You are not logged in")).toBeTruthy();
});
