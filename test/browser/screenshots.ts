import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import type { Browser, Page } from "playwright-core";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { CommandContext } from "../../src/cli/context.ts";
import { runDemo } from "../../src/cli/demo.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { startBrowser } from "./harness/chromium.ts";

/** Takes the screenshots in the README, of the status page and of the demo in a terminal: `npm run screenshots`. */

type DemoOptions = Parameters<typeof runDemo>[0];

const FOLDER = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const DESKTOP = { width: 1440, height: 1080 };
const PHONE = { width: 390, height: 844 };
/** Episodes that take minutes are visible within a minute. */
const PAGE_DEMO: DemoOptions = { nodes: 2_000, sessions: 5_000, seed: 7, speed: 6, port: 0 };
const PAGE_DEMO_MS: DurationMs = 1.5 * MINUTE_MS;
const TERMINAL_DEMO: DemoOptions = { nodes: 500, sessions: 5_000, seed: 1, speed: 8, port: 0 };
const TERMINAL_DEMO_MS: DurationMs = 20 * SECOND_MS;
const TERMINAL = { width: 1320, height: 860 };
const TERMINAL_COLORS: Readonly<Record<string, string>> = { 31: "#f07178", 32: "#7fd88f", 33: "#e5c76b" };
/** Time in which the page is redrawn after a change. */
const SETTLE_MS: DurationMs = SECOND_MS;

interface Demo {
  /** URL of the status page. */
  readonly url: string;
  /** What the demo has printed, with colors. */
  output(): string;
  stop(): Promise<unknown>;
}

async function startDemo(options: DemoOptions): Promise<Demo> {
  const stop = new AbortController();
  let out = "";
  const context: CommandContext = {
    env: { FORCE_COLOR: "1" },
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
  const ended = runDemo(options, context);
  for (;;) {
    const url = /status page +(\S+)/.exec(stripVTControlCharacters(out))?.[1];
    if (url !== undefined) {
      return {
        url,
        output: () => out,
        stop() {
          stop.abort();
          return ended;
        },
      };
    }
    await systemClock.sleep(SECOND_MS / 10);
  }
}

async function takeScreenshot(page: Page, name: string, fullPage = false): Promise<void> {
  await systemClock.sleep(SETTLE_MS);
  await page.screenshot({ path: `${FOLDER}${name}.png`, fullPage });
  console.log(`docs/images/${name}.png`);
}

/** Takes a screenshot of what a demo prints in a terminal. */
async function takeTerminalScreenshot(browser: Browser): Promise<void> {
  const demo = await startDemo(TERMINAL_DEMO);
  await systemClock.sleep(TERMINAL_DEMO_MS);
  const page = await browser.newPage({ viewport: TERMINAL });
  const html = `$ npm run demo -- --speed ${TERMINAL_DEMO.speed}\n\n${demo.output()}`
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the output contains terminal colors.
    .replace(/\u001b\[(\d+)m/g, (_match, code: string) =>
      code in TERMINAL_COLORS ? `<span style="color: ${TERMINAL_COLORS[code]}">` : "</span>",
    );
  await page.setContent(
    `<body style="margin: 16px; background: #1e1e1e; color: #ddd; overflow: hidden"><pre style="margin: 0">${html}</pre>`,
  );
  await takeScreenshot(page, "demo");
  await demo.stop();
}

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const browser = await startBrowser();
  const running = await startDemo(PAGE_DEMO);
  const page = await browser.newPage({ viewport: DESKTOP, colorScheme: "light" });
  await page.goto(running.url);
  // The other demo runs in the meantime.
  await Promise.all([systemClock.sleep(PAGE_DEMO_MS), takeTerminalScreenshot(browser)]);
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
  await page.getByRole("button", { name: "Close the panel" }).click();
  await page.mouse.move(0, 0);
  await page.setViewportSize(PHONE);
  await page.evaluate("document.activeElement.blur(); scrollTo(0, 0)");
  await takeScreenshot(page, "page-phone");
  await browser.close();
  await running.stop();
}

await main();
process.exit();
