// The console in a real browser, against a server that runs and has an open
// incident with a suggested action. Set HOLDFAST_E2E_LOGIN_URL (a one-time console
// login) and HOLDFAST_E2E_SCREENSHOTS (a folder).
// The whole way is walked once on the desktop; the phone sees every screen of it.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
  "utf8",
);
const browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const desktop = { width: 1440, height: 900 };
// Tells the run of this test from others.
const reason = `end-to-end test ${Date.now()}`;
const phone = { width: 375, height: 812 };

/** Settings are needed: a suite that skips itself proves nothing. */
function setting(name, what) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: it is ${what}`);
  return value;
}

let browser;
let page;
let folder;
let origin;
const complaints = [];

before(async () => {
  const loginUrl = setting(
    "HOLDFAST_E2E_LOGIN_URL",
    "a one-time console login, http://…/login?code=…",
  );
  folder = setting("HOLDFAST_E2E_SCREENSHOTS", "the folder that takes the screenshots");
  mkdirSync(folder, { recursive: true });
  origin = new URL(loginUrl).origin;
  const executablePath =
    process.env.HOLDFAST_E2E_CHROMIUM ?? browsers.find((file) => existsSync(file));
  assert.ok(executablePath, `no Chromium: looked for ${browsers.join(", ")}; run: make deps`);
  // Debian's sandbox refuses root, as which containers run.
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: desktop, reducedMotion: "reduce" });
  page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on("pageerror", (error) => complaints.push(`page error: ${error.message}`));
  page.on("console", (message) => {
    if (/content security policy/i.test(message.text())) complaints.push(message.text());
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && url.protocol !== "data:") {
      complaints.push(`request to another party: ${request.url()}`);
    }
  });
});

after(async () => {
  await browser?.close();
});

/** One picture for each width and theme, with axe and a check for sideways scrolling. */
async function look(name) {
  for (const viewport of [desktop, phone]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.waitForFunction(
        (scheme) => document.documentElement.dataset.mantineColorScheme === scheme,
        colorScheme,
      );
      const at = `${name} at ${viewport.width} px, ${colorScheme}`;
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= viewport.width, `${at} scrolls sideways: ${width} px wide`);
      await checkAccess(at);
      await scrollThrough();
      await page.screenshot({
        path: path.join(folder, `${name}-${viewport.width}-${colorScheme}.png`),
        fullPage: true,
      });
    }
  }
  await page.setViewportSize(desktop);
  await page.emulateMedia({ colorScheme: "light" });
}

/** Shows every part of the page once: a canvas that never was in view is left out of a full picture. */
async function scrollThrough() {
  await page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => done()));
    for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight / 2) {
      window.scrollTo(0, y);
      await frame();
      await frame();
    }
    window.scrollTo(0, 0);
    await frame();
  });
}

async function checkAccess(at) {
  // evaluate runs through the debugger, so the content policy stays in force.
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document);
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(
        ({ id, help, nodes }) =>
          `${id}: ${help}: ${nodes
            .map((node) => node.html)
            .slice(0, 3)
            .join(" ")}`,
      );
  });
  assert.deepEqual(found, [], `axe on ${at}`);
}

/** Milliseconds of a countdown such as "14:59". */
function left(text) {
  const parts = text.split(":").map(Number);
  assert.ok(parts.length >= 2 && parts.every(Number.isFinite), `"${text}" is no countdown`);
  return parts.reduce((total, part) => total * 60 + part, 0) * 1000;
}

test("a one-time link logs in, once, and only when asked", async () => {
  await page.goto(process.env.HOLDFAST_E2E_LOGIN_URL);
  await page.getByTestId("continue").waitFor();
  const cookies = await page.context().cookies();
  assert.deepEqual(cookies, [], "opening the link must have no effect");
  await look("login");
  await page.getByTestId("continue").click();
  await page.waitForURL(`${origin}/`);
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
  await look("overview");
});

test("an incident leads to a plan, and the confirmed plan to a lease that counts down", async () => {
  await page.getByTestId("incident").first().click();
  await page.waitForURL(/\/incidents\//);
  await page.getByTestId("suggestion").first().waitFor();
  await look("incident");

  await page.getByTestId("suggestion").first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Policy path").waitFor();
  await look("plan");

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
  await look("lease");
});

test("the lease is on the overview, and one click with a confirmation takes it back", async () => {
  await page.getByRole("link", { name: "← Overview" }).click();
  const lease = page.getByTestId("leases").getByTestId("run").filter({ hasText: reason });
  await lease.waitFor();
  await lease.getByTestId("revert").click();
  await page.getByTestId("confirm-revert").waitFor();
  await look("revert");
  await page.getByTestId("confirm-revert").click();
  await lease.waitFor({ state: "detached" });
  await look("reverted");
});

test("every page is one press away, on the desktop and on a phone", async () => {
  const nav = page.getByRole("navigation", { name: "Main" });
  for (const [name, testid] of [
    ["Signals", "rules"],
    ["Gateways", "revisions"],
  ]) {
    await nav.getByRole("link", { name }).click();
    await page.getByTestId(testid).waitFor();
    await look(name.toLowerCase());
  }
  await nav.getByRole("link", { name: "Incidents" }).click();
  await page.waitForURL(/\/incidents$/);
  await page.getByText("All", { exact: true }).click();
  await page.waitForURL(/all=true/);
  await page.getByTestId("incident").first().waitFor();
  await look("incidents");
});

test("the page broke no rule of its own on the way", () => {
  assert.deepEqual(complaints, []);
});
