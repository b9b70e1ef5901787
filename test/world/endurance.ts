import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Assembly, assemble, prepareAccess } from "../../src/assembly.ts";
import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { seededRandom } from "../../src/base/random.ts";
import { readConfigFile } from "../../src/commands/config.ts";
import { readTextFile } from "../../src/commands/context.ts";
import { type AppParts, type Foundation, layFoundation } from "../../src/foundation.ts";
import type { Clock, LogFields } from "../../src/model/ports.ts";
import { observe } from "../../src/observation.ts";
import { createVirtualClock, type VirtualClock } from "../../src/simulator/clock.ts";
import { rateLimitedCount, replyCounts } from "../../src/simulator/inspection.ts";
import { createService, type SimulatedService } from "../../src/simulator/service.ts";
import { createSimulatedTransport } from "../../src/simulator/transport.ts";
import { createMemoryStore, DATABASE_FILE, openStore } from "../../src/store/sqlite.ts";
import { createBell } from "../../src/system/bell.ts";
import { createKeptLog, START_MS } from "../engine/daemon.ts";
import { type EnduranceSize, enduranceScenario, writeEnduranceConfig } from "./endurance-fleet.ts";

/** What is measured at the end of a day, after a garbage collection. */
export interface EnduranceDay {
  readonly day: number;
  /** Of the whole process, the simulated service included. */
  readonly heapBytes: number;
  readonly bufferBytes: number;
  /** Rows of the journal, by table. */
  readonly rows: Readonly<Record<string, number>>;
  /** When the oldest row that is over was written, in days before now. */
  readonly oldestRowDays: number;
  readonly series: number;
  readonly nodes: number;
  /** Nodes that the page shows and that left the fleet more than two walks ago. */
  readonly goneNodesShown: number;
  /** Different values of each label, over all families. */
  readonly labelValues: Readonly<Record<string, number>>;
}

/** What the run came to. */
export interface EnduranceEnd {
  readonly joined: number;
  readonly left: number;
  readonly calls: number;
  readonly refusedCalls: number;
  readonly actions: number;
  /** Exceptions in the log. */
  readonly defectsLogged: number;
  readonly tookSeconds: number;
  /** Heap of what is left once the daemon is stopped and released: the simulated service and the program itself. */
  readonly heapBytesWithoutDaemon: number;
}

/** The day whose heap the others are compared with: all code has run by then. */
const BASELINE_DAY = 2;
const MEASURE_EVERY_DAYS = 5;

/** The tables whose rows are over at some time, and the column that says when. */
const DATED = { episodes: "closed_at", actions: "over_at", decisions: "at", orders: "at" } as const;
const TABLES = [...Object.keys(DATED), "timers", "holds", "facts", "calls"];
/** Two walks of the nodes, and one of the sessions after them. */
const GONE_MS: DurationMs = 3 * HOUR_MS;
const SCRAPE_EVERY_MS: DurationMs = 6 * HOUR_MS;
/** The collectors look once a second whether there is something to publish, and publish at least every 5 s. */
const LOOK_MS: DurationMs = SECOND_MS;
/** In place of that: 90 days of 17,000 rounds a day, each over the whole fleet, would take hours. */
const COARSE_LOOK_MS: DurationMs = 30 * MINUTE_MS;

/** A whole daemon, but for the web server, over a simulated service on virtual time. */
interface Run {
  readonly clock: VirtualClock;
  readonly service: SimulatedService;
  readonly foundation: Foundation;
  readonly assembly: Assembly;
  readonly folder: string;
  readonly defects: () => number;
}

function start(size: EnduranceSize): Run {
  const folder = mkdtempSync(join(tmpdir(), "proxywarden-endurance-"));
  const clock = createVirtualClock(START_MS);
  const service = createService(enduranceScenario(size), START_MS);
  let defects = 0;
  const log = {
    ...createKeptLog(),
    ...{ debug() {}, info() {}, warn() {}, setLevel() {} },
    // Alarms are errors too, and no defects.
    error: ({ err }: LogFields, message: string) => {
      if (!(err instanceof Error)) return;
      defects++;
      console.error(message, err.stack);
    },
  };
  const parts: AppParts = {
    ...{ clock, log, bell: createBell(), random: seededRandom(size.seed), version: "0.0.0" },
    readConfig: () => readConfigFile(writeEnduranceConfig(folder), {}),
    readFile: readTextFile,
    openStore,
    createMemoryStore,
  };
  const loaded = orThrow(readConfigFile(writeEnduranceConfig(folder), {}));
  const access = {
    ...orThrow(prepareAccess(loaded, parts)),
    transport: createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 }),
  };
  const foundation = orThrow(layFoundation(parts, loaded.config));
  const assembly = assemble(
    access,
    observe(access, null, { ...parts, clock: coarse(clock) }, foundation),
    [],
    parts,
    foundation,
  );
  return { clock, service, foundation, assembly, folder, defects: () => defects };
}

/** A clock on which the collectors publish every half an hour. */
const coarse = (clock: Clock): Clock => ({
  ...clock,
  sleep: (ms, signal) => clock.sleep(ms === LOOK_MS ? COARSE_LOOK_MS : ms, signal),
});

function orThrow<T>(result: { ok: true; value: T } | { ok: false; error: readonly string[] }): T {
  if (!result.ok) throw new Error(result.error.join("\n"));
  return result.value;
}

async function scrape({ foundation }: Run): Promise<string> {
  const answer = await foundation.exposition.scrape({});
  const text = Buffer.concat(answer.chunks).toString();
  answer.done();
  return text;
}

function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error("run node with --expose-gc");
  for (let round = 0; round < 4; round++) globalThis.gc();
}

async function measure(run: Run, day: number): Promise<EnduranceDay> {
  const shown = whatIsShown(run, await scrape(run));
  const journal = journalOf(run);
  // In another turn: nothing of the page is on the stack any more.
  await nextTurn();
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return { day, ...shown, ...journal, heapBytes: heapUsed, bufferBytes: arrayBuffers };
}

type Shown = Pick<EnduranceDay, "series" | "nodes" | "goneNodesShown" | "labelValues">;

function whatIsShown({ service }: Run, page: string): Shown {
  const { fleet, now } = service.world;
  const lines = page.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const shown = lines.flatMap((line) => (isOfEpisode(line) ? [] : (/node_id="([^"]*)"/.exec(line)?.[1] ?? [])));
  const present = new Set(fleet.nodes.map(({ id }) => id));
  const justLeft = new Set(fleet.moves.filter(({ at }) => at >= now - GONE_MS).map(({ id }) => id));
  return {
    ...{ series: lines.length, nodes: present.size, labelValues: labelValues(page) },
    goneNodesShown: [...new Set(shown)].filter((id) => !present.has(id) && !justLeft.has(id)).length,
  };
}

/** A node that was lost in an episode has the series of that episode until it ends. */
const isOfEpisode = (line: string): boolean => line.startsWith("proxywarden_node_episode{");

/** Counts the different values of each label over all families. */
function labelValues(page: string): Readonly<Record<string, number>> {
  const values = new Map<string, Set<string>>();
  for (const [, name, value] of page.matchAll(/[{,](\w+)="((?:[^"\\]|\\.)*)"/g)) {
    values.set(name!, (values.get(name!) ?? new Set()).add(value!));
  }
  return Object.fromEntries([...values].map(([name, all]) => [name, all.size]));
}

function journalOf({ folder, foundation, clock }: Run): Pick<EnduranceDay, "rows" | "oldestRowDays"> {
  const database = new DatabaseSync(join(folder, "state", DATABASE_FILE), { readOnly: true });
  const first = (sql: string) => Number(database.prepare(sql).get()?.value ?? clock.now());
  const rows = Object.fromEntries(TABLES.map((table) => [table, first(`SELECT COUNT(*) AS value FROM ${table}`)]));
  const oldest = Object.entries(DATED).map(([table, column]) =>
    first(`SELECT MIN(${column}) AS value FROM ${table} WHERE ${column} IS NOT NULL`),
  );
  database.close();
  return { rows, oldestRowDays: (foundation.books.now() - Math.min(...oldest)) / DAY_MS };
}

/** Runs for some days; tells of each as it ends. */
async function endure(size: EnduranceSize, onDay: (day: EnduranceDay) => void): Promise<EnduranceEnd> {
  const began = performance.now();
  let run: Run | null = start(size);
  for (let day = 1; day <= size.days; day++) {
    for (let at = 0; at < DAY_MS; at += SCRAPE_EVERY_MS) {
      await run.clock.advance(SCRAPE_EVERY_MS);
      await scrape(run);
    }
    // An operator looks in once a day: lost nodes and a breaker would hold all actions for ever.
    run.assembly.warden.orders.acceptInventory();
    run.assembly.warden.orders.resetBreaker();
    if (day <= BASELINE_DAY || day % MEASURE_EVERY_DAYS === 0 || day === size.days) onDay(await measure(run, day));
  }
  const { clock, service, assembly, foundation, folder } = run;
  const stopped = assembly.stop("all");
  await clock.advance(HOUR_MS);
  await stopped;
  foundation.store.close();
  rmSync(folder, { recursive: true });
  const { churn } = service.world;
  const counts = replyCounts(service);
  const sum = (some: typeof counts) => some.reduce((total, { count }) => total + count, 0);
  const end = {
    ...{ joined: churn.joins, left: churn.leaves, calls: sum(counts), refusedCalls: rateLimitedCount(service) },
    actions: sum(counts.filter(({ endpoint }) => endpoint.startsWith("POST"))),
    defectsLogged: run.defects(),
    tookSeconds: (performance.now() - began) / 1_000,
  };
  run = null;
  return { ...end, heapBytesWithoutDaemon: heapLeft(service) };
}

function heapLeft(service: SimulatedService): number {
  collectGarbage();
  const { heapUsed } = process.memoryUsage();
  // The service is alive until here.
  return service.world.now > 0 ? heapUsed : Number.NaN;
}

const { values } = parseArgs({
  options: {
    days: { type: "string", default: "90" },
    nodes: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
  },
});
const size = { days: Number(values.days), nodes: Number(values.nodes), seed: Number(values.seed) };
const end = await endure(size, (day) => console.log(JSON.stringify({ day })));
console.log(JSON.stringify({ end }));
