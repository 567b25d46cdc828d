import { configure, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import type { Change, Freeze } from "../../api/types";
import { alice, open } from "../../test/render";

// The page is loaded when it is first opened, which a busy machine takes its time for.
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 10_000 });

const catalogue = {
  services: [{ name: "chat", depends_on: ["llm"] }, { name: "llm" }],
  environments: [{ name: "prod", guard_band: "2h0m0s", scope: "neighbourhood" }],
};
const claimed: Change = {
  id: "c1",
  service: "llm",
  environment: "prod",
  kind: "deploy",
  status: "claimed",
  start: "2026-11-30T11:00:00Z",
  end: "2026-11-30T11:30:00Z",
  run_id: "r1",
  requester: "Carol",
  created_at: "2026-11-30T10:00:00Z",
};
const held: Change = {
  ...claimed,
  id: "c2",
  service: "chat",
  status: "held",
  start: "2026-11-30T12:42:00Z",
  end: "2026-11-30T13:00:00Z",
  requester: "Bob",
  params_hash: "abc",
  blockers: ["c1"],
};
const freeze: Freeze = {
  id: "f1",
  reason: "peak",
  environments: ["prod"],
  start: "2026-11-30T14:00:00Z",
  end: "2026-11-30T18:00:00Z",
  created_by: "Bob",
  created_at: "2026-11-29T14:00:00Z",
};
const answers = {
  "GET /api/v1/me": { body: { ...alice, role: "approver" } },
  "GET /api/v1/services": { body: catalogue },
  "GET /api/v1/changes": { body: { items: [claimed, held] } },
  "GET /api/v1/changes/c1": { body: claimed },
  "GET /api/v1/changes/c2": { body: held },
  "GET /api/v1/freezes": { body: { items: [freeze] } },
};

it("draws lanes, and a block leads to why it stands so", async () => {
  const { router } = open("/calendar?day=2026-11-30", answers);
  const lanes = await screen.findAllByTestId("lane");
  expect(lanes.map((lane) => lane.getAttribute("aria-label"))).toEqual([
    "chat in prod",
    "llm in prod",
  ]);
  expect(screen.getByText("Frozen: every service in prod: peak")).toBeTruthy();
  const block = within(lanes[0] as HTMLElement).getByTestId("block");
  expect(block.textContent).toContain("held");
  expect(block.textContent).toContain("13:42 to 14:00 local, 12:42 to 13:00 UTC");

  block.focus();
  await userEvent.keyboard("{ArrowDown}");
  expect(document.activeElement).toBe(within(lanes[1] as HTMLElement).getByTestId("block"));
  await userEvent.keyboard("{ArrowUp}{Enter}");
  expect(router.state.location.search).toMatchObject({ day: "2026-11-30", change: "c2" });
  const drawer = await screen.findByTestId("change-drawer");
  expect(
    await within(drawer).findByText(
      /1 h 12 min after deploy of llm ends \(chat depends on llm\); the guard band of prod is 2 h\./,
    ),
  ).toBeTruthy();
  expect(within(drawer).getByRole("button", { name: /Confirm/ })).toBeTruthy();
});

it("keeps its filters in the address", async () => {
  const { router, sent } = open("/calendar?day=2026-11-30", answers);
  const filters = within(await screen.findByRole("region", { name: "What is shown" }));
  await filters.findByRole("option", { name: "prod" });
  await userEvent.selectOptions(filters.getByLabelText("Environment"), "prod");
  await userEvent.click(screen.getByText("List"));
  await userEvent.click(screen.getByLabelText("The day after"));
  await waitFor(() =>
    expect(router.state.location.search).toEqual({
      day: "2026-12-01",
      environment: "prod",
      view: "list",
    }),
  );
  expect(sent.some(({ path }) => path === "/api/v1/changes")).toBe(true);
});

it("answers whether a change may go ahead, and when the next one may", async () => {
  const { sent } = open("/calendar?day=2026-11-30&service=chat", {
    ...answers,
    "POST /api/v1/changes/check": {
      body: {
        decision: "confirm",
        reason_code: "guard_band",
        reasons: [{ code: "guard_band", text: "deploy of llm …" }],
        blockers: [claimed],
        next_open: "2026-11-30T13:30:00Z",
        expires_at: "2026-11-30T12:05:00Z",
      },
    },
  });
  await screen.findAllByTestId("lane");
  const panel = screen.getByTestId("ask");
  await userEvent.click(within(panel).getByTestId("ask-calendar"));
  const answer = await within(panel).findByTestId("answer");
  expect(answer.textContent).toContain("It would be held until another person confirms it.");
  expect(answer.textContent).toContain("chat depends on llm");
  const first = sent.find(({ path }) => path.endsWith("/check"))?.body;
  expect(first).toMatchObject({ service: "chat", environment: "prod", duration: "30m" });
  expect(first).toHaveProperty("run_id", expect.stringMatching(/^console-preview-/));

  await userEvent.click(within(answer).getByRole("button", { name: "Ask for that time" }));
  await waitFor(() =>
    expect(sent.filter(({ path }) => path.endsWith("/check"))[1]?.body).toMatchObject({
      start: "2026-11-30T13:30:00.000Z",
    }),
  );
});

it("freezes with a reason, and lifts only after asking", async () => {
  const { sent, count } = open("/calendar?day=2026-11-30", {
    ...answers,
    "POST /api/v1/freezes": { status: 201, body: freeze },
    "DELETE /api/v1/freezes/f1": {},
  });
  await screen.findAllByTestId("lane");
  await userEvent.click(screen.getByTestId("new-freeze"));
  await userEvent.click(await screen.findByTestId("confirm-freeze"));
  expect(await screen.findByText("A reason is needed.")).toBeTruthy();
  await userEvent.type(screen.getByRole("textbox", { name: /Reason/ }), "peak");
  expect(screen.getByText(/Denies forward changes of every service/)).toBeTruthy();
  await userEvent.click(screen.getByTestId("confirm-freeze"));
  await waitFor(() => expect(screen.queryByTestId("confirm-freeze")).toBeNull());
  expect(
    sent.find(({ method, path }) => method === "POST" && path === "/api/v1/freezes")?.body,
  ).toMatchObject({ reason: "peak" });

  await userEvent.click(screen.getByRole("button", { name: "Lift the freeze: peak" }));
  const lift = await screen.findByTestId("confirm-lift");
  expect(count("DELETE", "/api/v1/freezes/f1")).toBe(0);
  await userEvent.click(lift);
  await waitFor(() => expect(count("DELETE", "/api/v1/freezes/f1")).toBe(1));
});
