import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { SECOND_MS } from "../../src/base/duration.ts";
import { ok } from "../../src/base/result.ts";
import { SHUTDOWN_BUDGET } from "../../src/daemon/shutdown.ts";
import type { Decision } from "../../src/model/remediation/episode.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { startWebServer } from "../../src/web/http/server.ts";
import { waitUntil } from "../integration/wait-until.ts";
import {
  heldDecision,
  idleRemediation,
  idleStatus,
  SAMPLES_START_MS,
  sampleRemediation,
} from "../web/api/remediation-view-fixture.ts";
import { buildFleet, withStatus } from "../web/fleet-fixture.ts";
import { adminOperators, defaultDeps, ignoredMetrics, log, startTestServer } from "../web/http/test-server.ts";
import { openPage, useBrowser } from "./harness/page-visit.ts";
import { quietStatus } from "./harness/quiet-daemon.ts";

useBrowser();

const operators = () => adminOperators({ value: () => "open-sesame", refresh: () => ok(false) });

const untilConnectionShows = (page: Page, text: string) =>
  page.locator("#connection").getByText(text, { exact: true }).waitFor();
const isGray = (page: Page) =>
  page.evaluate<boolean>(`getComputedStyle(document.querySelector("#fleet")).filter === "grayscale(1)"`);

test("a lost connection grays out the page, shows the time of its data and disables commands until it returns", async () => {
  const [fleet, laterFleet] = [
    buildFleet([{ id: "a" }, { id: "b" }]),
    buildFleet([{ id: "a" }, { id: "b" }, { id: "c" }]),
  ];
  const first = await startTestServer({ fleet: () => fleet, operators, ...quietStatus() }, systemClock);
  const { page } = await openPage(`${first.url}/#?q=name`, { timezoneId: "UTC" });
  const pause = page.locator("#pause button");
  await untilConnectionShows(page, "live");
  await page.getByText("No activity yet.").waitFor();
  expect([await isGray(page), await pause.isEnabled()]).toEqual([false, true]);
  await pause.click();
  await first.close(SHUTDOWN_BUDGET.webMs);
  await untilConnectionShows(page, "disconnected, as of 21 Nov 03:10:00");
  expect([await isGray(page), await pause.isDisabled()]).toEqual([true, true]);
  expect(await page.locator("dialog .primary").isDisabled()).toBe(true);
  expect(await page.locator("#disconnected").textContent()).toContain("Commands are disabled");
  expect(await page.title()).toBe("(disconnected) proxywarden");

  const second = await startWebServer({
    host: "127.0.0.1",
    port: Number(new URL(first.url).port),
    deps: {
      ...defaultDeps,
      ...quietStatus(),
      operators,
      epoch: "later",
      fleet: () => laterFleet,
      remediation: () => sampleRemediation(),
    },
    log,
    clock: systemClock,
    metrics: ignoredMetrics,
  });
  if (!second.ok) throw new Error(second.error);
  onTestFinished(() => second.value.close(SHUTDOWN_BUDGET.webMs));
  await untilConnectionShows(page, "live");
  expect([await isGray(page), await pause.isEnabled()]).toEqual([false, true]);
  expect(await page.locator("#disconnected").isHidden()).toBe(true);
  // Everything is read again, although the fleet has the revision that the page knows.
  await page.locator("#legend").getByText("3", { exact: true }).waitFor();
  await page.locator("#activity").getByText("6 of 6 actions within 1h").waitFor();
  await page.locator("#approvals").getByText("quarantine for 1d").waitFor();
});

test("a lost connection changes no size: what the page shows stays in its place", async () => {
  const paused = { at: SAMPLES_START_MS, reason: "a deploy" };
  const web = await startTestServer(
    {
      fleet: () => buildFleet([{ id: "a" }]),
      ...quietStatus(),
      remediation: () => ({ ...idleRemediation, status: () => ({ ...idleStatus, paused }) }),
    },
    systemClock,
  );
  const { page } = await openPage(web.url);
  await page.locator(".banner").getByText("a deploy").waitFor();
  await untilConnectionShows(page, "live");
  const heights = () =>
    page.locator(".banner, .tiles").evaluateAll((boxes) => boxes.map((box) => box.getBoundingClientRect().height));
  const before = await heights();
  await page.context().setOffline(true);
  await page.locator("#connection").getByText("disconnected").waitFor();
  expect(await heights()).toEqual(before);
});

test("a phone shows the mode and the lost connection", async () => {
  const web = await startTestServer({ fleet: () => buildFleet([{ id: "a" }]), ...quietStatus() }, systemClock);
  const { page } = await openPage(web.url, { viewport: { width: 390, height: 844 } });
  await page.locator("#chips").getByText("enforce").waitFor();
  await page.context().setOffline(true);
  await page.locator("#connection").getByText("disconnected").waitFor();
  expect(await page.locator("#chips").getByText("enforce").isVisible()).toBe(true);
  expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
});

test("the header fits all widths, also with a lost connection and a stored token", async () => {
  const web = await startTestServer({ fleet: () => buildFleet([{ id: "a" }]), ...quietStatus() }, systemClock);
  const { page } = await openPage("about:blank", { timezoneId: "UTC" });
  await page.addInitScript(`sessionStorage.setItem("proxywarden.token", "open-sesame")`);
  await page.goto(web.url);
  await page.locator("#forget").waitFor();
  await untilConnectionShows(page, "live");
  await page.context().setOffline(true);
  await page.locator("#connection").getByText("disconnected, as of").waitFor();
  for (const width of [320, 720, 900]) {
    await page.setViewportSize({ width, height: 800 });
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBe(width);
  }
});

test("data that the page can't show is named, and the commands stay enabled", async () => {
  let isReadable = false;
  const { status, budget } = quietStatus();
  const changed = (answer: unknown, change: object) => ({ ...(answer as object), ...(isReadable ? {} : change) });
  const web = await startTestServer(
    {
      fleet: () => buildFleet([{ id: "a" }]),
      operators,
      status: () => changed(status(), { collectors: null }),
      budget: () => changed(budget(), { categories: null }),
    },
    systemClock,
  );
  const { page } = await openPage(web.url);
  await untilConnectionShows(page, "incomplete");
  const note = page.locator("#not-shown");
  await note.getByText("The page can't show: budget, status.").waitFor();
  expect(await note.textContent()).toContain("reload the page");
  expect(await page.locator("#pause button").isEnabled()).toBe(true);
  expect(await page.locator("#disconnected").isHidden()).toBe(true);
  expect(await isGray(page)).toBe(false);
  isReadable = true;
  await untilConnectionShows(page, "live");
  expect(await note.isHidden()).toBe(true);
});

test("the response of a proxy is not reported as a daemon that does not respond", async () => {
  const web = await startTestServer({ ...quietStatus() }, systemClock);
  const { page } = await openPage(web.url, { timezoneId: "UTC" });
  await untilConnectionShows(page, "live");
  const badGateway = { status: 502, contentType: "text/html", body: "<h1>Bad Gateway</h1>" };
  await page.route("**/api/v1/status", (route) => route.fulfill(badGateway));
  const note = "The page shows the state as of 21 Nov 03:10:00: the response (HTTP 502) is not from the daemon.";
  await page.locator("#disconnected").getByText(note).waitFor();
});

test("a fleet and a history that the page can't show are not live", async () => {
  const web = await startTestServer(
    { fleet: () => buildFleet([{ id: "a" }]), operators, ...quietStatus() },
    systemClock,
  );
  const { page } = await openPage("about:blank");
  for (const path of ["fleet", "history"])
    await page.route(`**/api/v1/${path}`, (route) => route.fulfill({ json: {} }));
  await page.goto(web.url);
  await page.locator("#not-shown").getByText("The page can't show: charts, fleet.").waitFor();
  await untilConnectionShows(page, "incomplete");
  expect(await page.locator("#pause button").isEnabled()).toBe(true);
});

test.each([
  { times: "for the first time", isAgain: false },
  { times: "again", isAgain: true },
])("changes while the fleet is being read $times are shown", async ({ isAgain }) => {
  let fleet = buildFleet([{ id: "a" }, { id: "b" }]);
  const web = await startTestServer({ fleet: () => fleet, ...quietStatus() }, systemClock);
  const { page } = await openPage(isAgain ? web.url : "about:blank");
  if (isAgain) await page.locator("#labels").getByText("2/2").waitFor();
  const [asked, changed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let reads = 0;
  await page.route("**/api/v1/fleet", async (route) => {
    const response = await route.fetch();
    reads++;
    asked.resolve();
    await changed.promise;
    await route.fulfill({ response });
  });
  const network = await page.context().newCDPSession(page);
  await network.send("Network.enable");
  const event = new Promise((resolve) => {
    network.on("Network.eventSourceMessageReceived", ({ eventName }) => {
      if (eventName === "fleet") resolve(eventName);
    });
  });
  // After a failed request, the page reads everything again.
  if (isAgain) await page.route("**/api/v1/status", (route) => route.abort(), { times: 1 });
  else await page.goto(web.url);
  await asked.promise;
  await untilConnectionShows(page, "live");
  fleet = withStatus(fleet, { 1: "offline" });
  await event;
  const paints = () => page.locator("#canvas").getAttribute("data-paints");
  if (isAgain) await page.locator("#labels").getByText("1/2").waitFor();
  const before = await paints();
  changed.resolve();
  await waitUntil("the response is shown", async () => (await paints()) !== before);
  expect(await page.locator("#labels .muted").textContent()).toBe("1/2");
  expect(reads).toBe(1);
});

test("a stream is live while heartbeats arrive; without them the page polls, and reconnects", async () => {
  let fleet = buildFleet([{ id: "a" }, { id: "b" }]);
  const clock = createVirtualClock(0);
  const web = await startTestServer({ fleet: () => fleet, ...quietStatus() }, clock);
  const { page } = await openPage("about:blank");
  let streams = 0;
  page.on("request", (request) => {
    if (request.resourceType() === "eventsource") streams++;
  });
  const network = await page.context().newCDPSession(page);
  await network.send("Network.enable");
  await page.clock.install();
  await page.goto(web.url);
  await untilConnectionShows(page, "live");
  for (let heartbeat = 0; heartbeat < 3; heartbeat++) {
    const arrived = new Promise((resolve) => network.once("Network.eventSourceMessageReceived", resolve));
    await clock.advance(16 * SECOND_MS);
    expect(await arrived).toMatchObject({ eventName: "heartbeat" });
    await page.clock.fastForward(20 * SECOND_MS);
  }
  expect(streams).toBe(1);

  // The server's clock stands still now, and new streams are not answered.
  await page.route("**/api/v1/events*", () => {});
  fleet = buildFleet([{ id: "a" }, { id: "b" }, { id: "c" }]);
  await page.clock.fastForward(36 * SECOND_MS);
  await untilConnectionShows(page, "polling");
  await page.clock.fastForward(10 * SECOND_MS);
  await page.locator("#legend").getByText("3", { exact: true }).waitFor();
  await page.unroute("**/api/v1/events*");
  await page.clock.fastForward(36 * SECOND_MS);
  await untilConnectionShows(page, "live");
});

test.each([
  { data: "fleet", path: "fleet", shown: "#legend", text: "2" },
  { data: "activity", path: "actions", shown: "#activity", text: "6 of 6 actions within 1h" },
  { data: "policies", path: "policies", shown: "#policies", text: "reboot-offline" },
])("if the $data can't be read once, the page says so and reads again", async ({ data, path, shown, text }) => {
  const fleet = buildFleet([{ id: "a" }, { id: "b" }]);
  const remediation = () => sampleRemediation();
  const web = await startTestServer({ fleet: () => fleet, remediation, ...quietStatus() }, systemClock);
  const { page } = await openPage("about:blank");
  await page.clock.install();
  const isPath = ({ pathname, search }: URL) => pathname === `/api/v1/${path}` && !search.includes("awaiting");
  await page.route(isPath, (route) => route.fulfill({ status: 503, json: { error: "unavailable" } }));
  await page.goto(web.url);
  await page.locator("#not-shown").getByText(`The page can't show: ${data}.`).waitFor();
  await untilConnectionShows(page, "incomplete");
  await page.unroute(isPath);
  await page.clock.fastForward(10 * SECOND_MS);
  await page.locator(shown).getByText(text).first().waitFor();
  await untilConnectionShows(page, "live");
});

test("a page that was opened in a hidden tab reads the activity again when it is shown", async () => {
  let decisions: readonly Decision[] = [];
  const remediation = () => ({ ...idleRemediation, decisions: async () => decisions });
  const web = await startTestServer({ remediation, ...quietStatus() }, systemClock);
  const { page } = await openPage("about:blank");
  await page.addInitScript(`Object.defineProperty(document, "hidden", { value: true, configurable: true })`);
  await page.goto(web.url);
  await page.locator("#activity").getByText("No activity yet.").waitFor();
  decisions = [heldDecision];
  await page.evaluate(`delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))`);
  await page.locator("#activity").getByText("6 of 6 actions within 1h").waitFor();
});
