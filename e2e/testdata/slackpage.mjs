// The simulated Slack's page in a real browser: the card is there, its button
// asks and trips the breaker, the card follows by itself, Revert takes it back.
//
// usage: node slackpage.mjs PAGE_URL CONSOLE_SOURCES CHROMIUM SCREENSHOT
import { createRequire } from "node:module";
import path from "node:path";

const [pageUrl, sources, executablePath, screenshot] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(sources, "package.json"))("playwright-core");
// Debian's sandbox refuses root, as which containers run.
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(20_000);
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(`${pageUrl}/?channel=C0INCIDENTS&as=U0000ALICE`);
  await page.getByRole("button", { name: "Trip breaker" }).click();
  await page.locator("#confirm-yes").click();
  const clicked = Date.now();
  await page.getByText("in force since revision").first().waitFor();
  console.log(`click → the page says in force: ${Date.now() - clicked} ms`);
  await page.getByText("verified: 2 gateways report").first().waitFor();
  await page.screenshot({ path: screenshot, fullPage: true });
  await page.getByRole("button", { name: "Revert" }).click();
  await page.getByText("ended (reverted)").first().waitFor();
  if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join("; ")}`);
} finally {
  await browser.close();
}
