// The console during `holdfast demo --story slow-model`: the alert comes by
// itself, and the slow-model runbook is walked through from the console while
// charts and leases are watched. Settings are those of console.test.mjs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { left, logIn, look, open } from "./harness.mjs";

let suite;
let page;

before(async () => {
  suite = await open();
  page = suite.page;
});

after(async () => {
  await suite?.browser.close();
});

/** What a person answers in this story: a limit holds, and the rollback of the model ends it. */
const answers = {
  limit: "run",
  enough: "holds",
  change: "undo",
  undone: "done",
  replicas: "unchanged",
  release: "reverted",
  open: "reverted",
};

test("the overview shows the signals of each service before anything is wrong", async () => {
  await logIn(suite);
  const service = page.getByTestId("service").filter({ hasText: "llm" });
  await service.first().waitFor();
  await service.first().getByTestId("sparkline").first().waitFor();
  await look(suite, "story-overview");
});

test("the alert comes by itself, and leads to an incident with charts and marks", async () => {
  // No reload: the page hears of it.
  await page.getByTestId("incident").first().waitFor({ timeout: 180_000 });
  await page.getByTestId("incident").first().click();
  await page.waitForURL(/\/incidents\//);
  await page.getByTestId("chart").first().locator("canvas").waitFor();
  await page.getByTestId("suggestion").first().waitFor();
  await look(suite, "story-incident");
});

test("the runbook walks from isolate to restore", { timeout: 600_000 }, async () => {
  await page.getByTestId("runbook-suggestion").first().click();
  await page.getByTestId("confirm-start").waitFor();
  await look(suite, "story-start");
  await page.getByTestId("confirm-start").click();
  await page.waitForURL(/\/runbooks\/runs\//);
  await page.getByTestId("answers").waitFor();
  await look(suite, "story-runbook");
  await walk();
  await page.locator('[data-testid="step"][data-current]').waitFor({ state: "detached" });
  const failed = await page
    .locator('[data-testid="step"][data-status="failed"]')
    .evaluateAll((steps) => steps.map((step) => step.dataset.step));
  // Locating finds what is wrong; that is no failure of the run.
  assert.deepEqual(
    failed.filter((step) => !["decode", "memory", "throughput"].includes(step)),
    [],
    "steps that failed",
  );
  await look(suite, "story-done");
  await page
    .getByRole("navigation", { name: "Main" })
    .getByRole("link", { name: "Overview" })
    .click();
  await page.getByTestId("service").first().waitFor();
  await look(suite, "story-after");
});

/** Answers whatever is asked until no step is in progress. */
async function walk() {
  const current = page.locator('[data-testid="step"][data-current]');
  let seen = "";
  for (;;) {
    const asked = page.getByTestId("answers");
    await asked.or(page.getByTestId("run-summary")).first().waitFor({ timeout: 240_000 });
    if ((await current.count()) === 0) return;
    const step = await current.getAttribute("data-step");
    const answer = answers[step];
    assert.ok(answer && step !== seen, `step ${step} asks: ${await current.textContent()}`);
    if (answer === "reverted") await revertAll();
    await page.getByTestId(`answer-${answer}`).click();
    if (answer === "run") await confirmPlan();
    await page.waitForFunction(
      (id) => document.querySelector('[data-testid="step"][data-current]')?.dataset.step !== id,
      step,
      { timeout: 240_000 },
    );
    seen = step;
  }
}

/** The plan of an action step is shown before it runs; then its lease counts down. */
async function confirmPlan() {
  await page.getByRole("dialog").getByText("Policy path").waitFor();
  await page.getByTestId("confirm-step").click();
  const countdown = page.getByTestId("runbook-leases").getByTestId("countdown").first();
  await countdown.waitFor();
  const first = await countdown.textContent();
  await page.waitForFunction(
    ([element, text]) => element.textContent !== text,
    [await countdown.elementHandle(), first],
  );
  assert.ok(left(await countdown.textContent()) < left(first), "the lease counts down");
  await look(suite, "story-lease");
}

/** Takes the leases of the run back, one by one. */
async function revertAll() {
  const lease = page.getByTestId("runbook-leases").getByTestId("run");
  while ((await lease.count()) > 0) {
    const before = await lease.count();
    await lease.first().getByTestId("revert").click();
    await page.getByTestId("confirm-revert").click();
    await page.waitForFunction(
      (count) =>
        document.querySelectorAll('[data-testid="runbook-leases"] [data-testid="run"]').length <
        count,
      before,
    );
  }
}

test("the page broke no rule of its own on the way", () => {
  assert.deepEqual(suite.complaints, []);
});
