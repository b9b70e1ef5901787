import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { buildFleet, withStatus } from "../web/fleet-fixture.ts";
import { openDaemon, useBrowser } from "./harness/page-visit.ts";

useBrowser();

const fleetOf = (...ids: readonly string[]) => buildFleet(ids.map((id) => ({ id })));
const addressOf = (page: Page) => new URL(page.url()).hash;
const untilCounted = (page: Page, nodes: number) =>
  page.locator("#legend").getByText(String(nodes), { exact: true }).waitFor();

test("a click opens the node under the pointer if the beginning of the grid is out of view", async () => {
  const { page } = await openDaemon();
  await page.setViewportSize({ width: 1440, height: 300 });
  await page.evaluate(`scrollBy(0, document.querySelector("#cells").getBoundingClientRect().bottom - 200)`);
  const { x, y, height } = (await page.locator("#cells").boundingBox())!;
  await page.mouse.move(x + 5, y + height - 5);
  const name = await page.locator("#tip b").textContent();
  await page.mouse.down();
  await page.mouse.up();
  await page.locator("#panel").waitFor();
  expect(addressOf(page)).toBe(`#${name!.replace("name of ", "node/")}?`);
});

test("the smallest cells are filled with the color of their status, also in forced colors mode", async () => {
  const nodes = Array.from({ length: 10_000 }, (_, index) => ({ id: `node_${index}` }));
  const fleet = withStatus(buildFleet(nodes), { 0: "offline" });
  const { page } = await openDaemon({ fleet: () => fleet });
  const pixel = (x: number) =>
    page.evaluate<string>(
      `document.querySelector("#canvas").getContext("2d").getImageData(${x}, 0, 1, 1).data.join(", ")`,
    );
  const color = await page.evaluate<string>(`getComputedStyle(document.querySelector("#legend .is-offline")).color`);
  expect(`rgb(${await pixel(2)})`).toBe(color.replace(")", ", 255)"));
  await page.emulateMedia({ forcedColors: "active" });
  await page.reload();
  await page.locator("#labels .region").waitFor();
  expect(`rgb(${await pixel(2)})`).toBe(color.replace(")", ", 255)"));
});

test("the keyboard cursor stays where it is if nodes are added while the panel shows another node", async () => {
  let fleet = fleetOf("a", "b", "c");
  const { page } = await openDaemon({ fleet: () => fleet }, "/#node/a");
  await page.locator("#cells").focus();
  await page.keyboard.press("End");
  fleet = fleetOf("a", "b", "c", "d");
  await untilCounted(page, 4);
  await page.keyboard.press("Enter");
  await page.waitForURL(/#node\/c\?/);
});

test("a fleet with fewer nodes is shown while a search is set and the grid is hidden", async () => {
  let fleet = fleetOf("a", "b", "c");
  const { page, pageErrors } = await openDaemon({ fleet: () => fleet }, "/#?q=name");
  await page.getByRole("button", { name: "table" }).click();
  fleet = fleetOf("a");
  await untilCounted(page, 1);
  await page.evaluate("new Promise(requestAnimationFrame)");
  expect(pageErrors).toEqual([]);
});
