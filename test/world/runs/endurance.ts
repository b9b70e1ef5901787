import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { readConfigFile } from "../../../src/cli/config/config-loading.ts";
import { openConfigResources } from "../../../src/daemon/config-resources.ts";
import { type Leader, startCollection, startLeader } from "../../../src/daemon/leader.ts";
import { type DaemonDeps, openRuntime, type Runtime } from "../../../src/daemon/runtime.ts";
import { DATABASE_FILE } from "../../../src/journal/sqlite/folder.ts";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import type { Clock, LogFields } from "../../../src/model/ports.ts";
import { createVirtualClock, type VirtualClock } from "../../../src/simulator/clock.ts";
import {
  createService,
  rateLimitedCount,
  replyCounts,
  type SimulatedService,
} from "../../../src/simulator/http/service.ts";
import { createRecordingLog, START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { commandsOf } from "../../harness/operator-commands.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { bodyOf } from "../../harness/scrape-body.ts";
import { scriptOptions } from "../../harness/script-options.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";
import { type EnduranceSize, enduranceScenario, writeEnduranceConfig } from "./endurance-fleet.ts";

/** Measurements at the end of a day, after a garbage collection. */
export interface EnduranceDay {
  readonly day: number;
  /** Heap of the whole process, including the simulated service. */
  readonly heapBytes: number;
  readonly bufferBytes: number;
  /** Number of journal rows by table. */
  readonly rows: Readonly<Record<string, number>>;
  /** Age of the oldest closed row, in days. */
  readonly oldestRowDays: number;
  readonly series: number;
  readonly nodes: number;
  /** Number of nodes in /metrics that left the fleet more than two walks ago. */
  readonly removedNodesShown: number;
  /** Number of distinct values of each label, over all families. */
  readonly labelValues: Readonly<Record<string, number>>;
}

/** Totals of a run. */
export interface EnduranceEnd {
  readonly joined: number;
  readonly left: number;
  readonly calls: number;
  readonly rejectedCalls: number;
  readonly actions: number;
  /** Number of exceptions in the log. */
  readonly defectsLogged: number;
  readonly tookSeconds: number;
}

/** Later days are compared with this one, by which all code has run. */
const BASELINE_DAY = 2;
const MEASURE_EVERY_DAYS = 5;

/** Tables that are pruned by age, with the column that holds the time. */
const PRUNED_TABLES = { episodes: "closed_at", actions: "over_at", decisions: "at", operator_commands: "at" } as const;
const TABLES = [...Object.keys(PRUNED_TABLES), "timers", "holds", "facts", "calls"];
/** Two walks of the nodes, and one of the sessions after them. */
const GONE_MS: DurationMs = 3 * HOUR_MS;
const SCRAPE_EVERY_MS: DurationMs = 6 * HOUR_MS;
/** The interval at which the collectors check for changes to publish. */
const POLL_INTERVAL_MS: DurationMs = SECOND_MS;
/** Replaces it: at the real interval, 90 days of rounds over the whole fleet would take hours. */
const COARSE_POLL_INTERVAL_MS: DurationMs = 30 * MINUTE_MS;

/** A daemon without its web server, connected to a simulated service on virtual time. */
interface Run {
  readonly clock: VirtualClock;
  readonly service: SimulatedService;
  readonly runtime: Runtime;
  readonly leader: Leader;
  readonly folder: string;
  readonly defects: () => number;
}

async function start(size: EnduranceSize): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "proxywarden-endurance-"));
  const clock = createVirtualClock(START_MS);
  const service = createService(enduranceScenario(size), START_MS);
  let defects = 0;
  const log = {
    ...createRecordingLog(),
    debug() {},
    info() {},
    warn() {},
    setLevel() {},
    // Alerts are logged as errors without an exception; they are not defects.
    error: ({ err }: LogFields, message: string) => {
      if (!(err instanceof Error)) return;
      defects++;
      console.error(message, err.stack);
    },
  };
  const deps: DaemonDeps = {
    clock,
    log,
    random: seededRandom(size.seed),
    version: "0.0.0",
    readConfig: () => readConfigFile(writeEnduranceConfig(folder), {}),
    openStore: ({ path }) => openSqliteStore(path!),
  };
  const loaded = orThrow(readConfigFile(writeEnduranceConfig(folder), {}));
  const resources = {
    ...orThrow(openConfigResources(loaded, deps)),
    transport: createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 }),
  };
  const { runtime, term } = orThrow(await openRuntime(deps, loaded.config));
  const collection = startCollection(resources, null, { ...runtime, clock: coarseClock(clock) }, term!);
  const leader = startLeader(resources, collection, [], runtime, term!);
  return { clock, service, runtime, leader, folder, defects: () => defects };
}

/** Returns a clock on which the collectors publish every half hour. */
const coarseClock = (clock: Clock): Clock => ({
  ...clock,
  sleep: (ms, signal) => clock.sleep(ms === POLL_INTERVAL_MS ? COARSE_POLL_INTERVAL_MS : ms, signal),
});

async function scrape({ runtime }: Run): Promise<string> {
  const answer = await runtime.exposition.scrape({});
  const text = bodyOf(answer).toString();
  answer.release();
  return text;
}

/** Collects everything that is unreachable. A normal collection leaves old code and weakly held objects. */
function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error("run node with --expose-gc");
  globalThis.gc({ type: "major", execution: "sync", flavor: "last-resort" });
}

async function measure(run: Run, day: number): Promise<EnduranceDay> {
  const metrics = measureMetrics(run, await scrape(run));
  const journal = measureJournal(run);
  // In the next turn the stack no longer references the page.
  await nextTurn();
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return { day, ...metrics, ...journal, heapBytes: heapUsed, bufferBytes: arrayBuffers };
}

type MetricsFigures = Pick<EnduranceDay, "series" | "nodes" | "removedNodesShown" | "labelValues">;

function measureMetrics({ service }: Run, page: string): MetricsFigures {
  const { fleet, now } = service.network;
  const lines = page.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const shown = lines.flatMap((line) => (isOfEpisode(line) ? [] : (/node_id="([^"]*)"/.exec(line)?.[1] ?? [])));
  const present = new Set(fleet.nodes.map(({ id }) => id));
  const justLeft = new Set(fleet.membershipChanges.filter(({ at }) => at >= now - GONE_MS).map(({ id }) => id));
  return {
    series: lines.length,
    nodes: present.size,
    labelValues: labelValues(page),
    removedNodesShown: [...new Set(shown)].filter((id) => !present.has(id) && !justLeft.has(id)).length,
  };
}

/** A node that was lost in an episode keeps the series of the episode until the episode ends. */
const isOfEpisode = (line: string): boolean => line.startsWith("proxywarden_node_episode{");

/** Counts the distinct values of each label over all families. */
function labelValues(page: string): Readonly<Record<string, number>> {
  const values = new Map<string, Set<string>>();
  for (const [, name, value] of page.matchAll(/[{,](\w+)="((?:[^"\\]|\\.)*)"/g)) {
    values.set(name!, (values.get(name!) ?? new Set()).add(value!));
  }
  return Object.fromEntries([...values].map(([name, all]) => [name, all.size]));
}

function measureJournal({ folder, leader, clock }: Run): Pick<EnduranceDay, "rows" | "oldestRowDays"> {
  const database = new DatabaseSync(join(folder, "state", DATABASE_FILE), { readOnly: true });
  const first = (sql: string) => Number(database.prepare(sql).get()?.value ?? clock.now());
  const rows = Object.fromEntries(TABLES.map((table) => [table, first(`SELECT COUNT(*) AS value FROM ${table}`)]));
  const oldest = Object.entries(PRUNED_TABLES).map(([table, column]) =>
    first(`SELECT MIN(${column}) AS value FROM ${table} WHERE ${column} IS NOT NULL`),
  );
  database.close();
  return { rows, oldestRowDays: (leader.term.remediationState.now() - Math.min(...oldest)) / DAY_MS };
}

/** Runs the daemon for some days. `onDay` receives the measurements as they are taken. */
async function runEndurance(size: EnduranceSize, onDay: (day: EnduranceDay) => void): Promise<EnduranceEnd> {
  const began = performance.now();
  const run = await start(size);
  for (let day = 1; day <= size.days; day++) {
    for (let at = 0; at < DAY_MS; at += SCRAPE_EVERY_MS) {
      await run.clock.advance(SCRAPE_EVERY_MS);
      await scrape(run);
    }
    // Once a day an operator ends the holds that only an operator can end.
    commandsOf(run.leader).acceptInventory();
    commandsOf(run.leader).resetBreaker();
    if (day <= BASELINE_DAY || day % MEASURE_EVERY_DAYS === 0 || day === size.days) onDay(await measure(run, day));
  }
  const { clock, service, leader, folder } = run;
  const stopped = leader.stop("all");
  await clock.advance(HOUR_MS);
  await stopped;
  await leader.term.store.close();
  rmSync(folder, { recursive: true });
  const { churn } = service.network;
  const counts = replyCounts(service);
  const sum = (some: typeof counts) => some.reduce((total, { count }) => total + count, 0);
  return {
    joined: churn.joins,
    left: churn.leaves,
    calls: sum(counts),
    rejectedCalls: rateLimitedCount(service),
    actions: sum(counts.filter(({ endpoint }) => endpoint.startsWith("POST"))),
    defectsLogged: run.defects(),
    tookSeconds: (performance.now() - began) / 1_000,
  };
}

const values = scriptOptions(
  {
    days: { type: "string", default: "90" },
    nodes: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
  },
  ["days", "nodes", "seed"],
);
const size = { days: Number(values.days), nodes: Number(values.nodes), seed: Number(values.seed) };
const end = await runEndurance(size, (day) => console.log(JSON.stringify({ day })));
console.log(JSON.stringify({ end }));
