// What the browser suites share: a page that notes its own faults, pictures with
// axe and a check for sideways scrolling, and the login by a one-time link.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { chromium } from "playwright-core";

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
  "utf8",
);
const browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const desktop = { width: 1440, height: 900 };
const phone = { width: 375, height: 812 };

/** Settings are needed: a suite that skips itself proves nothing. */
function setting(name, what) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: it is ${what}`);
  return value;
}

/** Opens a browser; close it in the end. `complaints` must stay empty. */
export async function open() {
  const loginUrl = setting(
    "HOLDFAST_E2E_LOGIN_URL",
    "a one-time console login, http://…/login?code=…",
  );
  const folder = setting("HOLDFAST_E2E_SCREENSHOTS", "the folder that takes the screenshots");
  mkdirSync(folder, { recursive: true });
  const { origin } = new URL(loginUrl);
  const executablePath =
    process.env.HOLDFAST_E2E_CHROMIUM ?? browsers.find((file) => existsSync(file));
  assert.ok(executablePath, `no Chromium: looked for ${browsers.join(", ")}; run: make deps`);
  // Debian's sandbox refuses root, as which containers run.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: desktop, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const complaints = [];
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
  return { browser, page, origin, folder, loginUrl, complaints };
}

/** Follows the one-time link to the overview. */
export async function logIn({ page, origin, loginUrl }) {
  await page.goto(loginUrl);
  await page.getByTestId("continue").click();
  await page.waitForURL(`${origin}/`);
}

/** One picture for each width and theme, with axe and a check for sideways scrolling. */
export async function look({ page, folder }, name) {
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
      await checkAccess(page, at);
      await scrollThrough(page);
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
async function scrollThrough(page) {
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

async function checkAccess(page, at) {
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
export function left(text) {
  const parts = text.split(":").map(Number);
  assert.ok(parts.length >= 2 && parts.every(Number.isFinite), `"${text}" is no countdown`);
  return parts.reduce((total, part) => total * 60 + part, 0) * 1000;
}
