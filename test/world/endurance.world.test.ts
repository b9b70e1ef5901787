import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { HOUR_MS } from "../../src/base/duration.ts";
import type { EnduranceDay, EnduranceEnd } from "./runs/endurance.ts";

/** The journal keeps 90 days; the further days show that it deletes older rows. */
const DAYS = Number(process.env.WORLD_DAYS ?? 95);
const NODES = Number(process.env.WORLD_NODES ?? 2_000);
/** Later days are compared with the heap of this day, by which all code has run. */
const BASELINE_DAY = 2;
const HEAP_GROWTH_MAX = 1.2;
const SERIES_GROWTH_MAX = 1.1;
/** The actions of an episode are kept as long as the episode, which may last for days. */
const KEPT_DAYS_MAX = 93;

/** Runs in a separate process, whose heap holds nothing else. */
async function runInProcess(): Promise<{ days: readonly EnduranceDay[]; end: EnduranceEnd | null }> {
  const file = fileURLToPath(new URL("./runs/endurance.ts", import.meta.url));
  const child = spawn(process.execPath, ["--expose-gc", file, `--days=${DAYS}`, `--nodes=${NODES}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const days: EnduranceDay[] = [];
  let end: EnduranceEnd | null = null;
  for await (const line of createInterface({ input: child.stdout })) {
    const report = JSON.parse(line) as { day?: EnduranceDay; end?: EnduranceEnd };
    if (report.day !== undefined) days.push(report.day);
    end = report.end ?? end;
    console.log(line);
  }
  return { days, end };
}

test(
  "uses no more memory, series or rows after 90 days of changing nodes than after two days",
  async () => {
    const { days, end } = await runInProcess();
    const baseline = days.find(({ day }) => day === BASELINE_DAY)!;
    const last = days.at(-1)!;
    expect(end).toMatchObject({ defectsLogged: 0, rejectedCalls: 0 });
    expect(end!.left).toBeGreaterThan((NODES * DAYS) / 30);
    expect(last.heapBytes / baseline.heapBytes).toBeLessThanOrEqual(HEAP_GROWTH_MAX);
    expect(last.oldestRowDays).toBeLessThanOrEqual(KEPT_DAYS_MAX);
    expect(days.map(({ day, removedNodesShown }) => [day, removedNodesShown])).toEqual(days.map(({ day }) => [day, 0]));
    expect(last.series / last.nodes).toBeLessThanOrEqual((SERIES_GROWTH_MAX * baseline.series) / baseline.nodes);
    for (const [label, values] of Object.entries(last.labelValues)) {
      // Some reasons and outcomes first occur after days. They come from closed lists.
      const bound = (label === "node_id" || label === "name" ? last.nodes : (baseline.labelValues[label] ?? 0)) + 50;
      expect([label, values <= bound]).toEqual([label, true]);
    }
  },
  6 * HOUR_MS,
);
