import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { open } from "../../test/render";

// The palette is loaded when it is first opened, which a busy machine takes its time for.
vi.setConfig({ testTimeout: 30_000 });

const incident = {
  id: "i1",
  number: 7,
  title: "Chat is slow",
  severity: "critical",
  status: "open",
  firing: 1,
  resolved: 0,
  truncated: 0,
  opened_at: "2026-11-30T06:00:00Z",
};

it("is used with the keyboard alone: open, find, go", async () => {
  const { router } = open("/", { "GET /api/v1/incidents": { body: { items: [incident] } } });
  await screen.findByTestId("palette-button");
  await userEvent.keyboard("{Control>}k{/Control}");
  const field = await screen.findByRole("combobox", { name: /Find a page/ }, { timeout: 20_000 });
  await waitFor(() => expect(document.activeElement).toBe(field));
  const selected = () => screen.getByRole("option", { selected: true });
  expect(selected().textContent).toBe("Overview");
  expect(field.getAttribute("aria-activedescendant")).toBe(selected().id);

  await userEvent.keyboard("{ArrowDown}");
  expect(selected().textContent).toBe("Incidents");
  await screen.findByText("#7 Chat is slow", { selector: "[role=option] *" });
  await userEvent.keyboard("#7");
  expect(selected().textContent).toContain("#7 Chat is slow");
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/incidents/i1"));
  await waitFor(() => expect(screen.queryByTestId("palette")).toBeNull());
});

it("opens the dialog of an action, which shows its plan first", async () => {
  const spec = {
    name: "trip_breaker",
    title: "Trip breaker",
    summary: "Refuse calls to a dependency.",
    role: "responder",
    dangerous: false,
    default_ttl: "15m0s",
    max_ttl: "1h0m0s",
    params: [
      { name: "dependency", kind: "dependency", required: true, help: "", choices: ["llm"] },
    ],
  };
  const { sent } = open("/", { "GET /api/v1/actions": { body: { items: [spec] } } });
  await userEvent.click(await screen.findByTestId("palette-button"));
  await screen.findByTestId("palette", undefined, { timeout: 20_000 });
  await userEvent.keyboard("breaker");
  await waitFor(() =>
    expect(screen.getByRole("option", { selected: true }).textContent).toContain("Trip breaker"),
  );
  await userEvent.keyboard("{Enter}");
  expect(await screen.findByTestId("confirm-action")).toBeTruthy();
  expect(sent.filter((one) => one.path.endsWith("/run"))).toEqual([]);
});

it("says when nothing is called so", async () => {
  open("/");
  await userEvent.click(await screen.findByTestId("palette-button"));
  await screen.findByTestId("palette", undefined, { timeout: 20_000 });
  await userEvent.keyboard("zebra");
  expect(await screen.findByText("Nothing is called “zebra”.")).toBeTruthy();
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(screen.queryByTestId("palette")).toBeNull());
});
