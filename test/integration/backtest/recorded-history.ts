import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { COLLECTOR_FAMILIES } from "../../../src/cli/backtest/history-chunk.ts";
import type { FleetRates } from "../../../src/config/schema/scenario.ts";
import { createMemoryStateStore, type SqliteStateStore } from "../../../src/journal/sqlite/store.ts";
import { networkFamilyNames } from "../../../src/metrics/families/network-families.ts";
import type { Decision } from "../../../src/model/remediation/episode.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import { journalRows } from "../../harness/daemon/journal-rows.ts";
import { createNetworkPage } from "../../harness/daemon/network-page.ts";
import {
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { requireProgram } from "../process.ts";

/** A period of simulated time with a daemon, as a Prometheus that scraped the daemon holds it. */
export interface RecordedHistory {
  /** Data folder for Prometheus. */
  readonly data: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Decisions of the daemon, oldest first. */
  readonly decisions: readonly Decision[];
}

export interface RecordingOptions {
  readonly nodes: number;
  readonly durationMs: DurationMs;
  readonly rates: FleetRates;
  readonly config: RemediationConfig;
  /** Interval of walks and scrapes; absent: a minute. */
  readonly intervalMs?: DurationMs;
  /** Called before each scrape, which is not made if it returns false. `at`: time since the start. */
  beforeScrape?(at: DurationMs, daemon: VirtualDaemon): boolean;
}

/** The families that the policies of the tests read: the others would make the history larger. */
const READ_FAMILIES: ReadonlySet<string> = new Set([
  ...["proxynet_node_info", "proxynet_node_status", "proxynet_node_last_seen_timestamp_seconds"],
  ...["proxynet_node_cpu_usage_ratio", "proxynet_node_detail_timestamp_seconds"],
]);
const DAEMON_SAMPLE = new RegExp(`^(?:${COLLECTOR_FAMILIES.join("|")})\\{`);
const UNREAD_FAMILIES = new Set(networkFamilyNames().filter((name) => !READ_FAMILIES.has(name)));
/** Each detail is read once in so many walks. */
const WALKS_PER_DETAIL = 5;
/** Runs a daemon on virtual time, scrapes it every minute, and turns that into blocks of Prometheus below `folder`. */
export async function recordHistory(folder: string, options: RecordingOptions): Promise<RecordedHistory> {
  const { nodes, durationMs, rates, config, intervalMs = MINUTE_MS, beforeScrape = () => true } = options;
  const store = createMemoryStateStore();
  const daemon = await startVirtualDaemon({
    store,
    config,
    scenario: { nodes, sessions: nodes, rates },
    settings: {
      reads: new Set(["nodes", "details"]),
      schedules: {
        nodes: { kind: "every", intervalMs },
        details: { kind: "every", intervalMs: WALKS_PER_DETAIL * intervalMs },
        sessions: null,
        stats: null,
        hourly: null,
      },
    },
  });
  const file = join(folder, "history.txt");
  const networkPage = createNetworkPage(daemon, {
    nodeLabels: ["name", "country", "region", "version"],
    topCustomers: 0,
    deny: UNREAD_FAMILIES,
    seriesMax: 1_000_000,
  });
  const decisions: Decision[] = [];
  // A scrape between two walks, as in operation.
  await daemon.clock.advance(intervalMs / 2);
  for (let at = 0; at < durationMs; at += intervalMs) {
    await daemon.clock.advance(intervalMs);
    if (beforeScrape(at, daemon)) appendFileSync(file, await scrape(daemon, networkPage));
    if (at % HOUR_MS === 0 || at + intervalMs >= durationMs) collectDecisions(store, decisions);
  }
  const endMs = daemon.clock.now();
  await stopVirtualDaemon(daemon);
  appendFileSync(file, "# EOF\n");
  const promtool = requireProgram("/usr/bin/promtool", "prometheus");
  const data = join(folder, "data");
  execFileSync(promtool, ["tsdb", "create-blocks-from", "--max-block-duration=768h", "openmetrics", file, data]);
  return { data, startMs: START_MS, endMs, decisions };
}

function collectDecisions(store: SqliteStateStore, decisions: Decision[]): void {
  const known = decisions.at(-1)?.at ?? START_MS;
  decisions.push(...journalRows(store, "decisions").filter(({ at }) => at > known));
}

/** Returns the samples of a scrape, each with its time. */
async function scrape({ clock, metrics }: VirtualDaemon, networkPage: () => string): Promise<string> {
  const own = (await metrics.render("text")).split("\n").filter((line) => DAEMON_SAMPLE.test(line));
  const lines = [...networkPage().split("\n"), ...own].filter((line) => line !== "" && !line.startsWith("#"));
  const at = clock.now() / SECOND_MS;
  return `${lines.map((line) => `${line} ${at}`).join("\n")}\n`;
}
