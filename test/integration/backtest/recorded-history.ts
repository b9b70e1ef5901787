import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { createNetworkRenderer, releaseExposition } from "../../../src/metrics/render/renderer.ts";
import type { Decision } from "../../../src/model/remediation/decision.ts";
import type { FleetRates } from "../../../src/model/scenario.ts";
import { COLLECTORS } from "../../../src/model/snapshot.ts";
import type { RemediationRules } from "../../../src/remediation/context.ts";
import { START_MS, startVirtualDaemon, stopVirtualDaemon, type VirtualDaemon } from "../../harness/virtual-daemon.ts";
import { requireProgram } from "../process.ts";

/** A stretch of simulated time with a daemon, as a Prometheus that scraped the daemon holds it. */
export interface RecordedHistory {
  /** Data folder for Prometheus. */
  readonly data: string;
  readonly startMs: number;
  readonly endMs: number;
  /** What the daemon decided, oldest first. */
  readonly decisions: readonly Decision[];
}

export interface RecordingOptions {
  readonly nodes: number;
  readonly durationMs: DurationMs;
  readonly rates: FleetRates;
  readonly rules: RemediationRules;
  /** Called before each scrape, which is not made if it returns false. `at`: time since the start. */
  beforeScrape?(at: DurationMs, daemon: VirtualDaemon): boolean;
}

/** Families that policies don't read, and that would make the history larger. */
const UNREAD_FAMILIES = new Set([
  "proxynet_nodes",
  "proxynet_node_bandwidth_bytes",
  "proxynet_node_memory_usage_ratio",
]);
const SCRAPE_INTERVAL_MS: DurationMs = MINUTE_MS;
/** The journal returns at most this many rows at once. */
const ROWS_MAX = 1_000;

/** Runs a daemon on virtual time, scrapes it every minute, and turns that into blocks of Prometheus below `folder`. */
export async function recordHistory(folder: string, options: RecordingOptions): Promise<RecordedHistory> {
  const { nodes, durationMs, rates, rules, beforeScrape = () => true } = options;
  const store = createMemoryStateStore();
  const daemon = await startVirtualDaemon({
    ...{ store, rules },
    scenario: { nodes, sessions: nodes, rates },
    settings: {
      reads: new Set(["nodes", "details"]),
      schedules: {
        nodes: { kind: "every", intervalMs: MINUTE_MS },
        details: { kind: "every", intervalMs: 5 * MINUTE_MS },
        ...{ sessions: null, stats: null, hourly: null },
      },
    },
  });
  const file = join(folder, "history.txt");
  const renderer = createNetworkRenderer();
  const decisions: Decision[] = [];
  // A scrape between two walks, as in operation.
  await daemon.clock.advance(SCRAPE_INTERVAL_MS / 2);
  for (let at = 0; at < durationMs; at += SCRAPE_INTERVAL_MS) {
    await daemon.clock.advance(SCRAPE_INTERVAL_MS);
    if (beforeScrape(at, daemon)) appendFileSync(file, await scrape(daemon, renderer));
    if (at % DAY_MS === 0 || at + SCRAPE_INTERVAL_MS >= durationMs) collectDecisions(store, decisions);
  }
  const endMs = daemon.clock.now();
  await stopVirtualDaemon(daemon);
  appendFileSync(file, "# EOF\n");
  const promtool = requireProgram("/usr/bin/promtool", "prometheus");
  const data = join(folder, "data");
  execFileSync(promtool, ["tsdb", "create-blocks-from", "--max-block-duration=768h", "openmetrics", file, data]);
  return { data, startMs: START_MS, endMs, decisions };
}

function collectDecisions({ rows }: ReturnType<typeof createMemoryStateStore>, decisions: Decision[]): void {
  const known = decisions.at(-1)?.at ?? START_MS;
  const newer = rows.decisions({ limit: ROWS_MAX }).filter(({ at }) => at > known);
  if (newer.length === ROWS_MAX) throw new Error("more decisions than the journal returns at once");
  decisions.push(...newer.toReversed());
}

/** Returns the samples of a scrape, each with its time. */
async function scrape(
  { clock, snapshots, collectorManager, metrics }: VirtualDaemon,
  renderer: ReturnType<typeof createNetworkRenderer>,
): Promise<string> {
  const plan = collectorManager.plan();
  const staleAfterMs = Object.fromEntries(
    COLLECTORS.map((collector) => [collector, plan[collector]?.freshMs ?? 0]),
  ) as Record<(typeof COLLECTORS)[number], DurationMs>;
  const options = {
    ...{ topCustomers: 0, deny: UNREAD_FAMILIES, seriesMax: 1_000_000 },
    nodeLabels: ["name", "country", "region", "version"] as const,
  };
  const steps = renderer.refresh({
    ...{ snapshot: snapshots.last!, now: clock.monotonic(), serviceNowMs: clock.now(), staleAfterMs, options },
  });
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  const network = step.value.chunks.openmetrics.map(({ bytes }) => Buffer.from(bytes).toString()).join("");
  releaseExposition(step.value);
  const daemon = await metrics.render("openmetrics");
  const own = daemon.split("\n").filter((line) => /^proxywarden_(collect_|plan_)/.test(line));
  const at = clock.now() / SECOND_MS;
  const samples = [...network.split("\n"), ...own].filter((line) => line !== "" && !line.startsWith("#"));
  return `${samples.map((line) => `${line} ${at}`).join("\n")}\n`;
}
