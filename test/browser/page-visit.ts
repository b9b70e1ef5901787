import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { onTestFinished } from "vitest";

/** A page, and everything that went wrong in it: errors, warnings, and what its policy forbade. */
interface PageVisit {
  readonly page: Page;
  readonly pageErrors: readonly string[];
}

/** Opens a page in a context of its own, which ends with the test. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<PageVisit> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, ...options });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const pageErrors: string[] = [];
  page.on("console", (message) => {
    // A refused order is an answer of 401, which a browser reports by itself.
    const isRefusal = /the server responded with a status of 401/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isRefusal) pageErrors.push(message.text());
  });
  page.on("pageerror", (error) => pageErrors.push(String(error.stack)));
  page.on("requestfailed", (request) => {
    const why = request.failure()?.errorText;
    // Events end, and questions are given up, with the page.
    if (why !== "net::ERR_ABORTED") pageErrors.push(`${request.url()}: ${why}`);
  });
  await page.goto(url);
  return { page, pageErrors };
}
