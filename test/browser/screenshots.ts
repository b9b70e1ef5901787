import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { CommandContext } from "../../src/cli/context.ts";
import { runDemo } from "../../src/cli/demo.ts";
import { createSystemClock } from "../../src/platform/clock.ts";
import { startBrowser } from "./chromium.ts";

/** Takes the screenshots of the status page in the README: `npm run screenshots`. */

const FOLDER = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const DESKTOP = { width: 1440, height: 1080 };
const PHONE = { width: 390, height: 844 };
/** Episodes that take minutes are visible within a minute. */
const DEMO_SPEED = 6;
const DEMO_MS: DurationMs = 1.5 * MINUTE_MS;
/** Time in which the page is redrawn after a change. */
const SETTLE_MS: DurationMs = SECOND_MS;

const clock = createSystemClock();

/** Starts a demo and returns the URL of its page. */
async function startDemo(): Promise<{ readonly url: string; stop(): Promise<unknown> }> {
  const stop = new AbortController();
  let out = "";
  const context: CommandContext = {
    env: {},
    out: {
      write(text: string) {
        out += text;
      },
    },
    err: process.stderr,
    stop: stop.signal,
    onSighup() {},
    version: "0.1.0",
  };
  const ended = runDemo({ nodes: 2_000, sessions: 5_000, seed: 7, speed: DEMO_SPEED, port: 0 }, context);
  for (;;) {
    const url = /status page +(\S+)/.exec(out)?.[1];
    if (url !== undefined) {
      return {
        url,
        stop() {
          stop.abort();
          return ended;
        },
      };
    }
    await clock.sleep(SECOND_MS / 10);
  }
}

async function takeScreenshot(page: Page, name: string, fullPage = false): Promise<void> {
  await clock.sleep(SETTLE_MS);
  await page.screenshot({ path: `${FOLDER}${name}.png`, fullPage });
  console.log(`docs/images/${name}.png`);
}

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const running = await startDemo();
  const browser = await startBrowser();
  const page = await browser.newPage({ viewport: DESKTOP, colorScheme: "light" });
  await page.goto(running.url);
  await clock.sleep(DEMO_MS);
  await takeScreenshot(page, "page-light", true);
  await page.emulateMedia({ colorScheme: "dark" });
  await takeScreenshot(page, "page-dark");
  await page.emulateMedia({ colorScheme: "light" });
  // A node that is being treated, because its panel shows the most.
  await page.getByRole("link", { name: /^Being treated/ }).click();
  await page.locator("#attention a").first().click();
  await page.locator("#panel .activity").waitFor();
  await page.getByRole("button", { name: "Clear filter" }).click();
  await takeScreenshot(page, "page-node");
  await page.getByRole("button", { name: "Close the explanation" }).click();
  await page.mouse.move(0, 0);
  await page.setViewportSize(PHONE);
  await page.evaluate("document.activeElement.blur(); scrollTo(0, 0)");
  await takeScreenshot(page, "page-phone");
  await browser.close();
  await running.stop();
}

await main();
process.exit();
