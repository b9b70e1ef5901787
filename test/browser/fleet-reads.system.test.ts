import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { waitUntil } from "../integration/wait-until.ts";
import { buildFleet, withStatus } from "../web/fleet-fixture.ts";
import { deferred, startTestServer } from "../web/http/test-server.ts";
import { startBrowser } from "./chromium.ts";
import { openPage } from "./page-visit.ts";
import { quietStatus } from "./quiet-daemon.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

/** Starts a server with two nodes, and opens an empty page. */
async function startSmallFleet() {
  let fleet = buildFleet([{ id: "a" }, { id: "b", status: "offline" }]);
  const web = await startTestServer({ fleet: () => fleet, ...quietStatus() }, systemClock);
  const { page } = await openPage(browser, "about:blank");
  const set = (statuses: Parameters<typeof withStatus>[1]) => {
    fleet = withStatus(fleet, statuses);
  };
  return { page, url: web.url, set };
}

const untilLive = (page: Page) => page.locator("#connection").getByText("live", { exact: true }).waitFor();

/** Makes the page read everything again, because a request for the status fails. */
async function interruptStatus(page: Page): Promise<void> {
  await page.route("**/api/v1/status", (route) => route.abort());
  await page.locator("#connection").getByText("disconnected").waitFor();
  await page.unroute("**/api/v1/status");
}

test.each([
  { when: "for the first time", read: 1 },
  { when: "again", read: 2 },
])("changes while the fleet is being read $when are shown", async ({ read }) => {
  const { page, url, set } = await startSmallFleet();
  const [asked, changed] = [deferred<void>(), deferred<void>()];
  let reads = 0;
  await page.route("**/api/v1/fleet", async (route) => {
    const response = await route.fetch();
    if (++reads === read) {
      asked.keep();
      await changed.promise;
    }
    await route.fulfill({ response });
  });
  const network = await page.context().newCDPSession(page);
  await network.send("Network.enable");
  const event = new Promise((resolve) => {
    network.on("Network.eventSourceMessageReceived", ({ eventName }) => {
      if (eventName === "fleet") resolve(eventName);
    });
  });
  await page.goto(url);
  await untilLive(page);
  if (read > 1) await interruptStatus(page);
  await asked.promise;
  await untilLive(page);
  set({ 1: "online" });
  await event;
  changed.keep();
  await page.locator("#labels").getByText("2/2").waitFor();
  await waitUntil("the fleet is read once more", () => reads === read + 1);
});

/** Returns the opacity of the painted cell of a node. Cells that are filtered out are almost transparent. */
const opacityOf = (page: Page, index: number) =>
  page.evaluate<number>(`(() => {
    const canvas = document.querySelector("#canvas");
    const pitch = 20 * devicePixelRatio;
    return canvas.getContext("2d").getImageData(${index} * pitch + pitch / 2, pitch / 2, 1, 1).data[3];
  })()`);

test("the grid follows the filter after the same revision of the fleet was read again", async () => {
  const { page, url, set } = await startSmallFleet();
  await page.goto(`${url}/#?status=offline`);
  await waitUntil("the online node is dimmed", async () => (await opacityOf(page, 0)) < 128);
  await untilLive(page);
  const read = page.waitForResponse("**/api/v1/fleet");
  await interruptStatus(page);
  await read;
  await untilLive(page);
  set({ 0: "offline" });
  await page.locator("#filter").getByText("2 of 2 nodes").waitFor();
  await waitUntil("the node is not dimmed any more", async () => (await opacityOf(page, 0)) > 128);
});
