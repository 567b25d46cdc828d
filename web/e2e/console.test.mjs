// The console in a real browser, against a server that runs and has an open
// incident with a suggested action. Set HOLDFAST_E2E_LOGIN_URL (a one-time console
// login) and HOLDFAST_E2E_SCREENSHOTS (a folder).
// The whole way is walked once on the desktop; the phone sees every screen of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { left, look, open } from "./harness.mjs";

// Tells the run of this test from others.
const reason = `end-to-end test ${Date.now()}`;
let suite;
let page;

before(async () => {
  suite = await open();
  page = suite.page;
});

after(async () => {
  await suite?.browser.close();
});

test("a one-time link logs in, once, and only when asked", async () => {
  await page.goto(suite.loginUrl);
  await page.getByTestId("continue").waitFor();
  const cookies = await page.context().cookies();
  assert.deepEqual(cookies, [], "opening the link must have no effect");
  await look(suite, "login");
  await page.getByTestId("continue").click();
  await page.waitForURL(`${suite.origin}/`);
  const [session] = await page.context().cookies();
  assert.equal(session?.httpOnly, true, "the session cookie is out of reach of scripts");
});

test("the overview shows incidents, leases, gateways and the calendar, live", async () => {
  for (const part of ["incidents", "health", "leases", "gateways", "calendar"]) {
    await page.getByTestId(part).waitFor();
  }
  await page.getByTestId("incident").first().waitFor();
  await page.getByTestId("gateway").first().waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await look(suite, "overview");
});

test("an incident leads to a plan, and the confirmed plan to a lease that counts down", async () => {
  await page.getByTestId("incident").first().click();
  await page.waitForURL(/\/incidents\//);
  await page.getByTestId("suggestion").first().waitFor();
  await look(suite, "incident");

  await page.getByTestId("suggestion").first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Policy path").waitFor();
  await look(suite, "plan");

  await dialog.getByLabel("Reason").fill(reason);
  const answered = page.waitForResponse((response) => /\/actions\/\w+\/run$/.test(response.url()));
  await dialog.getByTestId("confirm-action").click();
  assert.equal((await answered).status(), 202, "the run is accepted");
  await dialog.waitFor({ state: "hidden" });

  const run = page.locator('[data-testid="run"][data-status="active"]').filter({ hasText: reason });
  await run.waitFor();
  const countdown = run.getByTestId("countdown");
  const first = left(await countdown.textContent());
  assert.ok(first > 0, "the lease has time left");
  await page.waitForFunction(
    ([element, text]) => element.textContent !== text,
    [await countdown.elementHandle(), await countdown.textContent()],
  );
  const second = left(await countdown.textContent());
  assert.ok(second < first, `the lease counts down: ${first} then ${second} ms`);
  await look(suite, "lease");
});

test("the lease is on the overview, and one click with a confirmation takes it back", async () => {
  await page.getByRole("link", { name: "← Overview" }).click();
  const lease = page.getByTestId("leases").getByTestId("run").filter({ hasText: reason });
  await lease.waitFor();
  await lease.getByTestId("revert").click();
  await page.getByTestId("confirm-revert").waitFor();
  await look(suite, "revert");
  await page.getByTestId("confirm-revert").click();
  await lease.waitFor({ state: "detached" });
  await look(suite, "reverted");
});

test("every page is one press away, on the desktop and on a phone", async () => {
  const nav = page.getByRole("navigation", { name: "Main" });
  for (const [name, testid] of [
    ["Signals", "rules"],
    ["Gateways", "revisions"],
  ]) {
    await nav.getByRole("link", { name }).click();
    await page.getByTestId(testid).waitFor();
    await look(suite, name.toLowerCase());
  }
  await nav.getByRole("link", { name: "Incidents" }).click();
  await page.waitForURL(/\/incidents$/);
  await page.getByText("All", { exact: true }).click();
  await page.waitForURL(/all=true/);
  await page.getByTestId("incident").first().waitFor();
  await look(suite, "incidents");
  await nav.getByRole("link", { name: "Runbooks" }).click();
  await page.getByTestId("runbook").first().waitFor();
  await look(suite, "runbooks");
  await nav.getByRole("link", { name: "Calendar" }).click();
  await page.getByTestId("ask-calendar").waitFor();
  await look(suite, "calendar");
});

test("the calendar says why a change would have to wait", async () => {
  const ask = page.getByTestId("ask");
  await ask.getByLabel("Service").selectOption("llm");
  await page.getByTestId("ask-calendar").click();
  await page.getByTestId("answer").waitFor();
  await look(suite, "why");
});

test("the palette finds a page by keyboard alone", async () => {
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").waitFor();
  await page.keyboard.type("overview");
  await look(suite, "palette");
  await page.keyboard.press("Enter");
  await page.getByTestId("leases").waitFor();
});

test("the page broke no rule of its own on the way", () => {
  assert.deepEqual(suite.complaints, []);
});
