import { type DurationMs, SECOND_MS } from "../../src/base/duration.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { startWebServer } from "../../src/web/http/server.ts";
import { orThrow } from "../harness/or-throw.ts";
import { defaultDeps, ignoredMetrics } from "../web/http/test-server.ts";
import { startBrowser } from "./harness/chromium.ts";
import { LargeFleet } from "./harness/large-fleet.ts";

/** Measures the status page in Chromium: `npm run bench:page`. */

const SIZES = [500, 10_000, 100_000];
const LOADS = 5;
const UPDATES = 20;
/** Nodes that change in an update. */
const NODES_CHANGED = 20;
/** The server publishes twice a second. */
const UPDATE_INTERVAL_MS: DurationMs = 0.6 * SECOND_MS;

const browser = await startBrowser();
const TITLES = [
  "nodes",
  "first paint of the fleet, ms",
  "CPU of the main thread until then, ms",
  "CPU of the main thread per update, grid, ms",
  "the same, table sorted by status, ms",
];
console.log(`| ${TITLES.join(" | ")} |\n| ${TITLES.map(() => "---:").join(" | ")} |`);
for (const nodes of SIZES) {
  const fleet = new LargeFleet(nodes);
  const log = { debug() {}, info() {}, warn: console.error, error: console.error };
  const web = orThrow(
    await startWebServer({
      host: "127.0.0.1",
      port: 0,
      deps: { ...defaultDeps, ...fleet.webDeps() },
      log,
      clock: systemClock,
      metrics: ignoredMetrics,
    }),
  );
  const { url } = web;
  const loads: Paint[] = [];
  for (let load = 0; load < LOADS; load++) loads.push(await firstPaint(url));
  const grid = await updateMs(url, fleet);
  const table = await updateMs(`${url}/#?view=table&sort=status`, fleet);
  const paints = [median(loads.map(({ ms }) => ms)), median(loads.map(({ cpuMs }) => cpuMs))];
  const cells = [nodes.toLocaleString("en"), ...paints.map((ms) => ms.toFixed(0)), grid.toFixed(1), table.toFixed(1)];
  console.log(`| ${cells.join(" | ")} |`);
  await web.close(SECOND_MS);
}
await browser.close();

interface Paint {
  /** Time from the navigation to the frame after the one in which the fleet was painted. */
  readonly ms: number;
  readonly cpuMs: number;
}

async function firstPaint(url: string): Promise<Paint> {
  const { context, page, cpuMs } = await openMeasured();
  const before = await cpuMs();
  await page.goto(url, { waitUntil: "commit" });
  const ms = await page.evaluate<number>(`new Promise((resolve) => {
    const check = () => {
      if (document.querySelector("#canvas")?.dataset.paints === undefined) requestAnimationFrame(check);
      else requestAnimationFrame(() => resolve(performance.now()));
    };
    check();
  })`);
  const paint = { ms, cpuMs: (await cpuMs()) - before };
  await context.close();
  return paint;
}

/** Opens an empty page, with the CPU time of its main thread. */
async function openMeasured() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 } });
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const cpuMs = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")!.value * SECOND_MS;
  };
  return { context, page, cpuMs };
}

/** Returns the CPU time of the main thread for an update, less what it does without updates. */
async function updateMs(url: string, fleet: LargeFleet): Promise<number> {
  const { context, page, cpuMs } = await openMeasured();
  await page.goto(url);
  await page.locator("#connection").getByText("live").waitFor();
  await systemClock.sleep(5 * SECOND_MS);
  const spentMs = async (update: () => void): Promise<number> => {
    const before = await cpuMs();
    for (let round = 0; round < UPDATES; round++) {
      update();
      await systemClock.sleep(UPDATE_INTERVAL_MS);
    }
    return (await cpuMs()) - before;
  };
  const idle = await spentMs(() => {});
  const busy = await spentMs(() => fleet.change(NODES_CHANGED));
  await context.close();
  return (busy - idle) / UPDATES;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1]!;
}
