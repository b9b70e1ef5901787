import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { SECOND_MS } from "../../src/base/duration.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { waitUntil } from "../integration/wait-until.ts";
import { buildFleet, withStatus } from "../web/fleet-fixture.ts";
import { startTestServer } from "../web/http/test-server.ts";
import { LargeFleet } from "./harness/large-fleet.ts";
import { openDaemon, openPage, useBrowser } from "./harness/page-visit.ts";
import { quietStatus } from "./harness/quiet-daemon.ts";

useBrowser();

const addressOf = (page: Page) => new URL(page.url()).hash;
const filterText = (page: Page) => page.locator("#filter span").textContent();
const namesListed = (page: Page) => page.locator("#attention .column-name").allTextContents();

/** Returns the counts of the remediation states, by label. */
const stateCounts = async (page: Page) => {
  const buttons = await page.locator("#marks button").allTextContents();
  return Object.fromEntries(buttons.map((text) => [text.replace(/\d+$/, ""), Number(/\d+$/.exec(text))]));
};

test("nodes that are treated, wait or are held have their own counts, colors and filters", async () => {
  const { page } = await openDaemon();
  expect(await stateCounts(page)).toEqual({
    "being treated": 2,
    "waiting (in flight)": 1,
    "waiting (canary)": 1,
    held: 2,
    "waiting for approval": 1,
    "given up": 1,
    "dry run": 1,
  });
  const colors = await page.evaluate<string[]>(
    `[...document.querySelectorAll("#marks .ring")].map((ring) => getComputedStyle(ring).color)`,
  );
  expect(new Set(colors).size).toBe(colors.length);
  await page.getByRole("link", { name: /^Waiting \(canary\) *1/ }).click();
  expect(addressOf(page)).toBe("#?remediation=canary");
  expect(await filterText(page)).toBe("1 of 500 nodes: waiting (canary)");
  expect(await namesListed(page)).toEqual(["name of node_307"]);
  // The selected node has a ring of another shape than a held one, which surrounds its cell.
  await page.getByRole("button", { name: "held" }).click();
  await page.locator("#attention a").first().click();
  await page.locator("#selected").waitFor();
  const shape = await page.evaluate<string>(`getComputedStyle(document.querySelector("#selected")).borderRadius`);
  expect(shape).toBe("50%");
});

test("each region has its name and its number of online nodes", async () => {
  const regions = Array.from({ length: 250 }, (_, index) => `region-${index}`);
  const { page } = await openDaemon({
    fleet: () => buildFleet(regions.map((region) => ({ id: `node of ${region}`, region }))),
  });
  expect(await page.locator("#labels .region").allTextContents()).toEqual(regions.map((region) => `${region}1/1`));
});

test("long names neither widen the page nor hide what follows them", async () => {
  const [name, region] = ["n".repeat(255), "r".repeat(150)];
  const { page } = await openDaemon({ fleet: () => buildFleet([{ id: "node_1", name, region }]) });
  const widthOf = (selector: string) =>
    page.locator(selector).evaluate((element) => element.getBoundingClientRect().width);
  // On a narrow screen the name of the region is above its nodes.
  for (const [width, y] of [
    [360, 24],
    [1440, 5],
  ] as const) {
    await page.setViewportSize({ width, height: 800 });
    await page.locator("#search").fill("n");
    await page.locator("#found a").waitFor();
    expect(await widthOf("#found")).toBeLessThan(width / 2 + 160);
    // Until the grid has its new layout, there may be no cell below the pointer.
    await waitUntil("a node has its tip", async () => {
      for (const x of [5, 6]) await page.locator("#cells").hover({ position: { x, y } });
      return page.locator("#tip").isVisible();
    });
    expect(await widthOf("#tip")).toBeLessThanOrEqual(await widthOf("#grid"));
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
  }
});

test("the table follows a new region and later changes while the grid is hidden", async () => {
  let fleet = buildFleet([{ id: "a" }, { id: "b" }]);
  const { page, pageErrors } = await openDaemon({ fleet: () => fleet });
  await page.getByRole("button", { name: "table" }).click();
  fleet = buildFleet([{ id: "a" }, { id: "b" }, { id: "c", region: "us-east" }]);
  const rows = page.locator("#node-table-rows");
  await rows.getByText("us-east").waitFor();
  fleet = withStatus(fleet, { 2: "offline" });
  await rows.getByText("offline", { exact: true }).waitFor();
  await page.getByRole("button", { name: "grid" }).click();
  const labels = () => page.locator("#labels .region").allTextContents();
  await waitUntil("the grid has both regions", async () => (await labels()).join() === "eu-west2/2,us-east0/1");
  expect(pageErrors).toEqual([]);
});

test("the columns of the table fill its width where some of them are hidden", async () => {
  const { page } = await openDaemon({}, "/#?view=table");
  for (const width of [1200, 400]) {
    await page.setViewportSize({ width, height: 900 });
    const rights = await page.evaluate<number[]>(
      `[...document.querySelectorAll("#node-table-head th, #node-table-count")].map((cell) => cell.getBoundingClientRect().right)`,
    );
    // The first is that of the table.
    expect(Math.max(...rights.slice(1))).toBeCloseTo(rights[0]!, 0);
  }
});

test("the titles of the table's columns do not cover a link that the keyboard moves to", async () => {
  const { page } = await openDaemon({}, "/#?view=table");
  await page.locator("#node-table-rows a").first().waitFor();
  await page.evaluate(`document.querySelector("#node-table").scrollTop = 3000`);
  await page.locator("#node-table-rows").getByText("name of node_341").focus();
  const headBottom = await page.evaluate<number>(
    `document.querySelector("#node-table-head").getBoundingClientRect().bottom`,
  );
  for (let press = 0; press < 12; press++) {
    await page.keyboard.press("Shift+Tab");
    expect((await page.locator("#node-table-rows a:focus").boundingBox())!.y).toBeGreaterThanOrEqual(headBottom);
  }
});

test("filter, selection and order are in the address, and survive a reload and the back button", async () => {
  const { page } = await openDaemon();
  // The buttons are replaced while the page connects, so a click may be lost.
  await waitUntil("the filter is in the address", async () => {
    const isFiltered = addressOf(page).includes("status=offline");
    const button = page.locator("#legend").getByRole("button", { name: "offline", pressed: false });
    if (!isFiltered) await button.click({ timeout: SECOND_MS }).catch(() => undefined);
    return isFiltered;
  });
  await page.keyboard.press("/");
  await page.keyboard.type("ap-south");
  await page.locator("#attention-head").getByRole("button", { name: "Id" }).click();
  const [first] = await namesListed(page);
  await page.locator("#attention a").first().click();
  await page.locator("#panel").waitFor();
  const address = addressOf(page);
  expect(address).toMatch(/^#node\/node_\d+\?status=offline&q=ap-south&attention_sort=id$/);
  await page.reload();
  await page.locator("#attention a").first().waitFor();
  expect(await namesListed(page)).toContain(first);
  expect(await page.locator("#search").inputValue()).toBe("ap-south");
  expect(await page.locator("#panel").isVisible()).toBe(true);
  expect(addressOf(page)).toBe(address);
  await page.goBack();
  await page.locator("#panel").waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Clear filter" }).click();
  expect(addressOf(page)).toBe("#?attention_sort=id");
  // A link to a section, or to a node alone, leaves the filter as it is.
  await page.getByRole("link", { name: /^Calls this month/ }).click();
  await waitUntil("the filter is in the address again", () => addressOf(page) === "#?attention_sort=id");
});

test("the list of nodes that need attention is complete over its pages, and sortable", async () => {
  const { page } = await openDaemon();
  const count = await page.locator("#attention-count").textContent();
  const pages = Number(/of (\d+)/.exec((await page.locator("#attention-pager").textContent()) ?? "")?.[1]);
  await page.locator("#attention-head").getByRole("button", { name: "Node" }).click();
  const names = new Set<string>();
  for (let at = 1; at <= pages; at++) {
    await page.locator("#attention-pager").getByText(`Page ${at} of ${pages}`).waitFor();
    for (const name of await namesListed(page)) names.add(name);
    if (at < pages) await page.getByRole("button", { name: "Next" }).click();
  }
  expect(`${names.size} nodes`).toBe(count);
  // The button has the focus although there is no next page.
  expect(await page.locator("#attention-pager button:focus").textContent()).toBe("Next");
  const collator = new Intl.Collator("en", { numeric: true });
  expect([...names]).toEqual([...names].toSorted(collator.compare));
  await page.locator("#attention-head").getByRole("button", { name: "Node" }).click();
  await page.locator("#attention-pager").getByText(`Page 1 of ${pages}`).waitFor();
  expect((await namesListed(page))[0]).toBe([...names].at(-1));
});

test("the search results show the current status of their nodes", async () => {
  const fleet = new LargeFleet(3);
  const { page } = await openDaemon(fleet.webDeps());
  await page.locator("#search").fill("node_1");
  await page.locator("#found li").getByText("online").waitFor();
  fleet.set({ 1: "offline" });
  await page.locator("#found li").getByText("offline").waitFor();
  expect(await page.locator("#found .is-offline").count()).toBe(1);
});

const CHOSEN = '#palette-list [aria-selected="true"]';

test("the keyboard opens commands, finds nodes and moves the focus to the search", async () => {
  const { page, pageErrors } = await openDaemon();
  await page.keyboard.press("Meta+k");
  await page.locator("#palette-input").fill("node_499");
  await page.keyboard.press("Enter");
  await page.locator("#panel-title").getByText("node_499").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("table");
  await page.keyboard.press("Enter");
  await page.locator("#node-table-rows a").first().waitFor();
  // Without operators, commands are listed but can't be sent.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("pause");
  expect(await page.locator("#palette-list [aria-disabled]").textContent()).toContain("Read-only");
  await page.keyboard.press("Enter");
  expect(await page.locator("#dialog").isVisible()).toBe(false);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("option", { name: "Change the theme" }).waitFor();
  await page.keyboard.press("Escape");
  // In a low window, the chosen command is scrolled into view.
  await page.setViewportSize({ width: 720, height: 360 });
  await page.keyboard.press("Control+k");
  await page.keyboard.press("ArrowUp");
  const boxOf = async (selector: string) => (await page.locator(selector).boundingBox())!;
  const last = await boxOf(CHOSEN);
  expect(last.y + last.height).toBeLessThanOrEqual(360);
  // The field does not cover it.
  const input = await boxOf("#palette-input");
  for (let entries = await page.locator("#palette-list [role=option]").count(); entries > 1; entries--) {
    await page.keyboard.press("ArrowUp");
    expect((await boxOf(CHOSEN)).y).toBeGreaterThanOrEqual(input.y + input.height);
  }
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  expect(await page.evaluate<string>("document.activeElement.id")).toBe("search");
  // A slash in a search is a character.
  await page.keyboard.type("a/b");
  expect(await page.locator("#search").inputValue()).toBe("a/b");
  expect(pageErrors.filter((error) => !error.includes("404"))).toEqual([]);
});

test("on a phone, the names of commands that can't be sent are not broken within a word", async () => {
  const { page } = await openDaemon();
  await page.setViewportSize({ width: 390, height: 844 });
  // The commands depend on the status of the daemon.
  await page.locator("#pause button").waitFor({ state: "attached" });
  await page.keyboard.press("Control+k");
  const name = (await page.locator("#palette-list span").getByText("Pause").boundingBox())!;
  expect(name.height).toBeLessThan(30);
});

test("the search field shows the filter after a command that replaces it", async () => {
  const { page } = await openDaemon();
  const field = page.locator("#search");
  await field.fill("node_4");
  await page.locator("#filter").getByText("111 of 500 nodes").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("option", { name: "Show all nodes" }).click();
  await page.locator("#filter span").waitFor({ state: "detached" });
  expect(await field.inputValue()).toBe("");
  await page.goBack();
  await page.locator("#filter").getByText("111 of 500 nodes").waitFor();
  expect(await field.inputValue()).toBe("node_4");
});

test("the page works if the browser blocks storage", async () => {
  const { page, pageErrors } = await openPage("about:blank");
  await page.addInitScript(`for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(globalThis, name, { get() { throw new Error("storage is blocked"); } });`);
  const web = await startTestServer({ fleet: () => buildFleet([{ id: "a" }]), ...quietStatus() }, systemClock);
  await page.goto(web.url);
  await page.getByRole("button", { name: "Theme: system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).waitFor();
  await page.getByRole("button", { name: "table" }).click();
  await page.locator("#node-table-rows").getByText("name of a").waitFor();
  expect(pageErrors).toEqual([]);
});

/** Returns the opacity of the painted cell of a node. Cells that are filtered out are almost transparent. */
const opacityOf = (page: Page, index: number) =>
  page.evaluate<number>(`(() => {
    const canvas = document.querySelector("#canvas");
    const pitch = 20 * devicePixelRatio;
    return canvas.getContext("2d").getImageData(${index} * pitch + pitch / 2, pitch / 2, 1, 1).data[3];
  })()`);

test("the grid follows the filter after the same revision of the fleet was read again", async () => {
  let fleet = buildFleet([{ id: "a" }, { id: "b", status: "offline" }]);
  const { page } = await openDaemon({ fleet: () => fleet }, "/#?status=offline");
  const untilLive = () => page.locator("#connection").getByText("live", { exact: true }).waitFor();
  await waitUntil("the online node is dimmed", async () => (await opacityOf(page, 0)) < 128);
  await untilLive();
  const read = page.waitForResponse("**/api/v1/fleet");
  // After a failed request, the page reads everything again.
  await page.route("**/api/v1/status", (route) => route.abort(), { times: 1 });
  await read;
  await untilLive();
  fleet = withStatus(fleet, { 0: "offline" });
  await page.locator("#filter").getByText("2 of 2 nodes").waitFor();
  await waitUntil("the node is not dimmed any more", async () => (await opacityOf(page, 0)) > 128);
});
