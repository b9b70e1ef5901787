import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { systemClock } from "../../../src/platform/clock.ts";
import type { WebDeps } from "../../../src/web/http/route.ts";
import { startTestServer } from "../../web/http/test-server.ts";
import { startBrowser } from "./chromium.ts";
import { LargeFleet } from "./large-fleet.ts";

let browser: Browser;

/** Starts Chromium before the tests of a file, and closes it after them. */
export function useBrowser(): void {
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser.close());
}

/** A page and its errors, warnings and violations of the content security policy. */
interface PageVisit {
  readonly page: Page;
  readonly pageErrors: readonly string[];
}

/** Opens a page in a new browser context, which is closed after the test. */
export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<PageVisit> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, ...options });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const pageErrors: string[] = [];
  page.on("console", (message) => {
    // Browsers log the 401 of a command with a wrong token.
    const isWrongToken = /the server responded with a status of 401/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isWrongToken) pageErrors.push(message.text());
  });
  page.on("pageerror", (error) => pageErrors.push(String(error.stack)));
  page.on("requestfailed", (request) => {
    const error = request.failure()?.errorText;
    // Requests in flight are aborted when the page is closed.
    if (error !== "net::ERR_ABORTED") pageErrors.push(`${request.url()}: ${error}`);
  });
  await page.goto(url);
  return { page, pageErrors };
}

/** Opens the page of a daemon with 500 nodes. `deps` replaces parts of the daemon. */
export async function openDaemon(deps: Partial<WebDeps> = {}, address = "/") {
  const fleet = new LargeFleet(500);
  const web = await startTestServer({ ...fleet.webDeps(), ...deps }, systemClock);
  const visit = await openPage(web.url + address, { timezoneId: "UTC" });
  await visit.page.locator("#marks b").first().waitFor();
  return visit;
}
