import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import type { GoldenSignal, RunbookRun, ServiceSignals } from "../api/types";
import { open } from "../test/render";

// A canvas is all that is missing here; what goes into it is tested in src/charts.
vi.mock("uplot", () => ({
  default: class {
    ctx = { canvas: new EventTarget() };
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

const signal = (more: Partial<GoldenSignal>): GoldenSignal => ({
  name: "errors",
  title: "Errors",
  unit: "ratio",
  query: 'service:errors:ratio_rate1m{service="llm"}',
  value: 0.12,
  health: "critical",
  source: "gateway",
  points: [
    { at: minutesAgo(2), value: 0.01 },
    { at: minutesAgo(1), value: 0.12 },
  ],
  ...more,
});

const llm: ServiceSignals = {
  service: "llm",
  environment: "prod",
  health: "critical",
  signals: [
    signal({}),
    signal({
      name: "decode",
      title: "Decode",
      unit: "seconds_per_token",
      value: null,
      health: "no_data",
      points: [],
    }),
  ],
  firing: ["CallersGetErrors"],
};

const run: RunbookRun = {
  id: "rr1",
  runbook: "slow-model",
  version: "v",
  title: "Slow model",
  params: {},
  incident: "i1",
  started_by: "Alice",
  status: "waiting",
  current: 0,
  started_at: minutesAgo(3),
  steps: [
    {
      step: {
        id: "enough",
        phase: "isolate",
        title: "Is the limit enough?",
        kind: "decision",
        command: "",
        expect: "",
        on_failure: "ask",
        question: "Did the errors end?",
      },
      status: "asking",
      attempt: 1,
      answers: ["yes", "no"],
    },
  ],
};

describe("the overview", () => {
  it("tells how to configure metrics where there are none, and calls nothing healthy", async () => {
    open("/");
    const panel = await screen.findByTestId("health");
    expect(await within(panel).findByText("No source of metrics is configured")).toBeTruthy();
    expect(within(panel).getByText("HOLDFAST_PROMETHEUS_URL")).toBeTruthy();
    expect(within(panel).queryByText("healthy")).toBeNull();
  });

  it("shows each signal with unit and source, and no data as no data", async () => {
    open("/", { "GET /api/v1/signals": { body: { items: [llm], source: "embedded" } } });
    const card = await screen.findByTestId("service");
    expect(within(card).getByText("CallersGetErrors")).toBeTruthy();
    const [errors, decode] = within(card).getAllByTestId("signal");
    expect(errors?.textContent).toContain("12%");
    expect(errors?.textContent).toContain("gateway");
    expect(within(card).getByTestId("sparkline").getAttribute("aria-label")).toBe(
      "Errors, last 1 min: 1 % to 12 %, now 12 %",
    );
    expect(decode?.textContent).toContain("no data");
    expect(decode?.textContent).not.toContain("0");
  });

  it("puts what is not known before what is fine", async () => {
    const fine = { ...llm, service: "chat", health: "ok", firing: [] };
    const unknown = { ...llm, service: "search", health: "no_data", firing: [] };
    open("/", {
      "GET /api/v1/signals": { body: { items: [fine, unknown, llm], source: "remote" } },
    });
    const cards = await screen.findAllByTestId("service");
    expect(cards.map((card) => card.getAttribute("aria-label"))).toEqual([
      "llm, prod",
      "search, prod",
      "chat, prod",
    ]);
  });

  it("shows what a running runbook asks, and leads to it", async () => {
    open("/", { "GET /api/v1/runbook-runs": { body: { items: [run] } } });
    const row = await screen.findByTestId("runbook-run");
    expect(row.textContent).toContain("Step 1 of 1: Did the errors end? (yes, no)");
    expect(within(row).getByRole("link", { name: "Slow model" }).getAttribute("href")).toBe(
      "/runbooks/runs/rr1",
    );
  });

  it("looks four hours ahead and says what comes later", async () => {
    const change = (id: string, hours: number) => ({
      id,
      service: id,
      environment: "prod",
      kind: "deploy",
      status: "claimed",
      start: minutesAgo(-hours * 60),
      end: minutesAgo(-hours * 60 - 30),
      run_id: id,
      created_at: minutesAgo(1),
    });
    open("/", {
      "GET /api/v1/changes": { body: { items: [change("soon", 3), change("later", 5)] } },
    });
    const panel = await screen.findByTestId("calendar");
    expect(await within(panel).findByText("soon · prod")).toBeTruthy();
    expect(within(panel).queryByText("later · prod")).toBeNull();
    expect(panel.textContent).toContain("1 change later, the first at");
  });
});

describe("the incident page", () => {
  const incident = {
    id: "i1",
    number: 7,
    title: "Chat is slow",
    severity: "critical",
    status: "open",
    service: "llm",
    environment: "prod",
    firing: 1,
    resolved: 0,
    truncated: 0,
    opened_at: minutesAgo(5),
  };
  const alert = {
    id: 1,
    fingerprint: "f",
    starts_at: minutesAgo(5),
    status: "firing",
    severity: "critical",
    labels: { alertname: "CallersGetErrors" },
    annotations: {},
    last_received_at: minutesAgo(1),
    repeats: 0,
  };
  const answers = {
    "GET /api/v1/incidents/i1": {
      body: {
        incident,
        alerts: [alert],
        runs: [],
        suggestions: [],
        runbooks: [
          {
            runbook: "slow-model",
            title: "Slow model",
            params: { service: "llm" },
            missing: ["target"],
            why: "the alert names it",
          },
        ],
      },
    },
    "GET /api/v1/incidents/i1/timeline": {
      body: {
        items: [
          { id: 1, at: minutesAgo(4), kind: "runbook", actor: "Alice", text: "Slow model started" },
        ],
      },
    },
    "GET /api/v1/signals": { body: { items: [llm], source: "embedded" } },
    "GET /api/v1/services": { body: { services: [{ name: "llm" }], environments: [] } },
    "GET /api/v1/query_range": {
      body: {
        items: [
          {
            labels: {},
            points: [
              { at: minutesAgo(6), value: 0.01 },
              { at: minutesAgo(1), value: 0.12 },
            ],
          },
        ],
        source: "embedded",
      },
    },
    "GET /api/v1/runbooks": {
      body: {
        items: [
          {
            id: "slow-model",
            version: "v",
            title: "Slow model",
            summary: "Shape the load.",
            params: [{ name: "service", kind: "service", required: true, help: "" }],
            steps: [],
          },
        ],
      },
    },
  };

  it("suggests a runbook, says what is left to fill in, and opens its dialog by address", async () => {
    const { router } = open("/incidents/i1", answers);
    const start = await screen.findByTestId("runbook-suggestion");
    expect(screen.getByText(/You fill in: target/)).toBeTruthy();
    expect(await screen.findByText("Slow model started")).toBeTruthy();
    await userEvent.click(start);
    await waitFor(() => expect(router.state.location.search).toEqual({ runbook: "slow-model" }));
    const dialog = await screen.findByRole("dialog");
    expect(await within(dialog).findByText("Shape the load.")).toBeTruthy();
    expect(within(dialog).getByDisplayValue("llm")).toBeTruthy();
    await userEvent.keyboard("{Escape}");
    await waitFor(() => expect(router.state.location.search).toEqual({}));
  });

  it("links the runs of its runbooks", async () => {
    open("/incidents/i1", {
      ...answers,
      "GET /api/v1/runbook-runs": { body: { items: [run] } },
    });
    const panel = await screen.findByTestId("runbooks");
    expect(await within(panel).findByRole("link", { name: "Slow model" })).toBeTruthy();
  });

  it("draws the signals, names the marks and tells the same as a table", async () => {
    open("/incidents/i1", answers);
    const charts = await screen.findAllByTestId("chart", undefined, { timeout: 5_000 });
    expect(charts).toHaveLength(2);
    const image = within(charts[0] as HTMLElement).getByRole("img");
    await waitFor(() => expect(image.getAttribute("aria-label")).toContain("at most 12 %"));
    expect((await screen.findByTestId("marks")).textContent).toContain("CallersGetErrors fires");
    await userEvent.click(screen.getByText("Table"));
    const row = within(await screen.findByTestId("signal-table")).getByRole("row", {
      name: /Errors/,
    });
    expect(row.textContent).toContain("1 %");
    expect(row.textContent).toContain("12 %");
  });

  it("asks for a service label where there is none", async () => {
    open("/incidents/i1", {
      ...answers,
      "GET /api/v1/incidents/i1": {
        body: {
          ...answers["GET /api/v1/incidents/i1"].body,
          incident: { ...incident, service: undefined },
        },
      },
    });
    expect(await screen.findByText("The alerts name no service")).toBeTruthy();
  });
});

describe("navigation", () => {
  it("leads to every page and says which one is open", async () => {
    const { router } = open("/");
    const nav = await screen.findByRole("navigation", { name: "Main" });
    const names = within(nav)
      .getAllByRole("link")
      .map((link) => link.textContent);
    expect(names).toEqual(["Overview", "Incidents", "Calendar", "Runbooks", "Signals", "Gateways"]);
    const link = within(nav).getByRole("link", { name: "Gateways" });
    await userEvent.click(link);
    await waitFor(() => expect(router.state.location.pathname).toBe("/gateways"));
    await waitFor(() => expect(link.getAttribute("aria-current")).toBe("page"));
    expect(document.activeElement).toBe(document.getElementById("main"));
  });

  it("keeps the filters of incidents in the address", async () => {
    const incident = (id: string, severity: string) => ({
      id,
      number: 1,
      title: `a ${severity} one`,
      severity,
      status: "resolved",
      firing: 0,
      resolved: 1,
      truncated: 0,
      opened_at: minutesAgo(5),
    });
    const { router } = open("/incidents?all=true&severity=warning", {
      "GET /api/v1/incidents": {
        body: { items: [incident("a", "warning"), incident("b", "critical")] },
      },
    });
    expect(await screen.findByText(/a warning one/)).toBeTruthy();
    expect(screen.queryByText(/a critical one/)).toBeNull();
    await userEvent.selectOptions(screen.getByRole("combobox", { name: "Severity" }), "");
    expect(await screen.findByText(/a critical one/)).toBeTruthy();
    expect(router.state.location.search).toEqual({ all: true });
  });

  it("reads incidents page by page", async () => {
    const one = (id: string, number: number) => ({
      id,
      number,
      title: id,
      severity: "info",
      status: "open",
      firing: 1,
      resolved: 0,
      truncated: 0,
      opened_at: minutesAgo(5),
    });
    let asked = 0;
    open("/incidents", {
      "GET /api/v1/incidents": () =>
        asked++ === 0 || asked === 2
          ? { body: { items: [one("first", 1)], next: "c" } }
          : { body: { items: [one("second", 2)] } },
    });
    await userEvent.click(await screen.findByRole("button", { name: "Read more" }));
    expect(await screen.findByText(/second/)).toBeTruthy();
    expect(screen.getByText(/first/)).toBeTruthy();
  });
});
