import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { CATEGORIES, PLANS } from "../../src/rate-limit/limits.ts";
import { categoryPaceRates } from "../../src/rate-limit/window-pace.ts";
import { SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { freePort } from "../../test/harness/servers/free-port.ts";
import { DAEMON_FLAGS, median } from "../bench-process.ts";
import { MASS_EVENT_CONFIG, type MassEvent, measureMassEvent } from "./mass-event.ts";
import { readPage, scrape } from "./scrape.ts";

/** Limit of each category in the simulated service and in the configuration. */
export const CALLS_PER_MINUTE = 6_000;
/** Time between two scrapes, as in Prometheus' default configuration. */
const SCRAPE_INTERVAL_MS = 15 * SECOND_MS;
/** Time between two readings of the memory. */
const MEMORY_INTERVAL_MS = SECOND_MS;
/** Time after the first walks in which the daemon warms up, before anything is measured. */
const WARM_UP_MS = MINUTE_MS;
/** Limit for the first walks: a million nodes take a thousand pages. */
const START_MS_MAX = 10 * MINUTE_MS;
const PAGE_RECORDS = 1_000;
/** The default of `limits.reserve`. */
const RESERVE = 0.2;
/** Unit of CPU times in /proc, on all platforms that Node supports. */
const CLOCK_TICKS_PER_SECOND = 100;
/** Concurrent calls of the client that only receives pages. More do not make it faster. */
const BARE_CALLS_IN_FLIGHT = 8;
/** Number of scrapes in each encoding at the end. The median is shown. */
const TIMED_SCRAPES = 5;
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A fleet to measure. */
export interface FleetSize {
  readonly nodes: number;
  readonly sessions: number;
}

/** Measurements of a daemon. Memory is in megabytes of 10^6 bytes. */
export interface ScaleResult extends FleetSize {
  /** From the start of the process until both lists were read. */
  readonly startSeconds: number;
  /** CPU time of the daemon until then. */
  readonly startCpuSeconds: number;
  /** Time that the calls of the longer walk take at the even rate of {@link categoryPaceRates}, without bursts. */
  readonly evenSeconds: number;
  /** Time in which a client that only receives pages reads both lists. */
  readonly callsSeconds: number;
  readonly rssSteadyMb: number;
  readonly rssPeakMb: number;
  /** Processor time of the daemon as a share of one core. */
  readonly cpuCores: number;
  /** Median over all scrapes of the 99th percentile of the event loop's delay. It includes the 10 ms of the probe's timer. */
  readonly delayP99Ms: number;
  readonly delayWorstMs: number;
  readonly callsPerMinute: number;
  readonly detailsPerMinute: number;
  readonly detailsPlannedPerMinute: number;
  readonly series: number;
  readonly plainMb: number;
  readonly plainMs: number;
  readonly gzipMb: number;
  readonly gzipMs: number;
  /** Median response time of the slowest of {@link API_PATHS}. */
  readonly apiMs: number;
  /** Longest delay of the event loop while a route is requested: median of the rounds of the worst route. */
  readonly apiDelayMs: number;
  /** The same in rounds of similar length without requests. */
  readonly quietDelayMs: number;
  readonly massEvent: MassEvent;
}

/** Starts the simulated service and the daemon, each in its own process, and measures the daemon for `measureMs`. */
export async function runDaemon(size: FleetSize, measureMs: number): Promise<ScaleResult> {
  const folder = mkdtempSync(join(tmpdir(), "proxywarden-scale-"));
  const service = fork(new URL("service-process.ts", import.meta.url), [String(size.nodes), String(size.sessions)], {
    execArgv: ["--max-old-space-size=8192"],
  });
  const [serviceUrl] = (await once(service, "message")) as [string];
  const port = await freePort();
  const startedAt = performance.now();
  const config = configOf(serviceUrl, port);
  const daemon = startDaemon(folder, config);
  try {
    const url = `http://127.0.0.1:${port}`;
    await untilComplete(url, size);
    const startSeconds = (performance.now() - startedAt) / SECOND_MS;
    const startCpuSeconds = cpuSecondsOf(daemon.pid!);
    await watch(url, daemon.pid!, WARM_UP_MS);
    const watched = await watch(url, daemon.pid!, measureMs);
    const { series } = await readPage(url);
    const [scrapes, api] = [await timeScrapes(url), await timeApi(url)];
    writeConfig(folder, { ...config, ...MASS_EVENT_CONFIG, policies: [...config.policies, MASS_EVENT_FILE] });
    const massEvent = await measureMassEvent(daemon, url, size.nodes);
    await stop(daemon);
    return {
      ...size,
      startSeconds,
      startCpuSeconds,
      evenSeconds: evenSeconds(size),
      massEvent,
      callsSeconds: await timeCalls(serviceUrl, size),
      series,
      ...watched,
      ...scrapes,
      ...api,
    };
  } finally {
    await stop(daemon);
    await stop(service);
    rmSync(folder, { recursive: true });
  }
}

/** The shipped policies, requested intervals and limits on actions, under limits that do not slow down lists. */
const configOf = (serviceUrl: string, port: number) => ({
  service: { base_url: serviceUrl, api_key: SIMULATION_KEY, usage_scale: "ratio" },
  limits: {
    plan: "enterprise",
    node_management: { requests: CALLS_PER_MINUTE },
    session_monitoring: { requests: CALLS_PER_MINUTE },
  },
  web: { listen: `127.0.0.1:${port}` },
  log: { level: "error" },
  policies: [join(ROOT, "config/policies/*.yaml")],
  receivers: [{ name: "oncall", log: true }],
});

const MASS_EVENT_FILE = fileURLToPath(new URL("mass-event.yaml", import.meta.url));

/** Returns the time that the longer walk takes if no call is sent in a burst. */
function evenSeconds({ nodes, sessions }: FleetSize): number {
  const limit = { requests: CALLS_PER_MINUTE, burst: 2 * CALLS_PER_MINUTE, windowMs: MINUTE_MS };
  const categories = { node_management: limit, session_monitoring: limit };
  const limits = { categories, plan: PLANS.enterprise, reserve: RESERVE };
  const callMs = Math.max(...CATEGORIES.map((category) => categoryPaceRates(limits, category).evenPace.costMs));
  return (Math.ceil(Math.max(nodes, sessions) / PAGE_RECORDS) * callMs) / SECOND_MS;
}

function writeConfig(folder: string, config: object): string {
  const file = join(folder, "proxywarden.yaml");
  writeFileSync(file, JSON.stringify({ ...config, state: { path: join(folder, "state") } }));
  return file;
}

function startDaemon(folder: string, config: object): ChildProcess {
  const file = writeConfig(folder, config);
  const log = openSync(join(folder, "log"), "w");
  // The compiled daemon, with the settings of the first line of src/main.ts and of the image.
  const flags = [...DAEMON_FLAGS, "--import", new URL("loop-probe.ts", import.meta.url).href];
  return spawn(process.execPath, [...flags, join(ROOT, "dist/main.js"), "run", "--config", file], {
    stdio: ["ignore", log, "inherit", "ipc"],
    env: { ...process.env, MALLOC_ARENA_MAX: "2", MALLOC_MMAP_THRESHOLD_: "32768" },
  });
}

/** Waits until the lists have been read completely. Polls a route that costs the daemon little. */
async function untilComplete(url: string, { sessions }: FleetSize): Promise<void> {
  const needed = sessions > 0 ? ["nodes", "sessions"] : ["nodes"];
  const until = performance.now() + START_MS_MAX;
  while (performance.now() < until) {
    const response = await fetch(`${url}/api/v1/status`).catch(() => null);
    const { collectors = {} } = ((await response?.json()) ?? {}) as StatusAnswer;
    if (needed.every((collector) => collectors[collector]?.complete === true)) return;
    await sleep(SECOND_MS / 10);
  }
  throw new Error(`the lists were not read within ${START_MS_MAX / MINUTE_MS} minutes`);
}

/** Returns the seconds that a client needs to receive all pages of both lists. */
async function timeCalls(serviceUrl: string, { nodes, sessions }: FleetSize): Promise<number> {
  const pagesOf = (list: string, records: number) =>
    Array.from(
      { length: Math.ceil(records / PAGE_RECORDS) },
      (_, index) => `${list}?page=${index + 1}&limit=${PAGE_RECORDS}`,
    );
  const pages = [...pagesOf("nodes", nodes), ...pagesOf("sessions", sessions)].values();
  const startedAt = performance.now();
  const receivePages = async () => {
    for (const page of pages) {
      const headers = { authorization: `Bearer ${SIMULATION_KEY}`, "accept-encoding": "gzip" };
      const response = await fetch(`${serviceUrl}/v1/${page}`, { headers });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`the service answered ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: BARE_CALLS_IN_FLIGHT }, receivePages));
  return (performance.now() - startedAt) / SECOND_MS;
}

interface StatusAnswer {
  readonly collectors?: Readonly<Record<string, { readonly complete: boolean | null }>>;
}

/** Scrapes the daemon as Prometheus does for `forMs`, and measures it meanwhile. */
async function watch(url: string, pid: number, forMs: DurationMs) {
  const first = await readPage(url);
  const startedAt = performance.now();
  const rss: number[] = [];
  const p99: number[] = [];
  let delayWorstMs = 0;
  let last = first;
  for (let scrapes = 1; scrapes * SCRAPE_INTERVAL_MS <= forMs; scrapes++) {
    const scrapeAt = startedAt + scrapes * SCRAPE_INTERVAL_MS;
    for (; performance.now() < scrapeAt; await sleep(MEMORY_INTERVAL_MS)) rss.push(memoryMb(pid, "VmRSS"));
    last = await readPage(url);
    p99.push(last.delayP99Ms);
    delayWorstMs = Math.max(delayWorstMs, last.delayMaxMs);
  }
  const perMinute = (calls: number) => (calls * MINUTE_MS) / (performance.now() - startedAt);
  return {
    rssSteadyMb: median(rss),
    rssPeakMb: memoryMb(pid, "VmHWM"),
    cpuCores: ((last.cpuSeconds - first.cpuSeconds) * SECOND_MS) / (performance.now() - startedAt),
    delayP99Ms: median(p99),
    delayWorstMs,
    callsPerMinute: perMinute(last.calls - first.calls),
    detailsPerMinute: perMinute(last.detailReads - first.detailReads),
    detailsPlannedPerMinute: last.detailsPlannedPerMinute,
  };
}

/** Reads a value of the process's status in megabytes: VmRSS is the memory now, VmHWM its peak. */
function memoryMb(pid: number, name: "VmRSS" | "VmHWM"): number {
  const [, kibibytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))!;
  return (Number(kibibytes) * 1_024) / 1e6;
}

/** Returns the CPU time of all threads of a process. */
function cpuSecondsOf(pid: number): number {
  // The name of the program, which is in parentheses, may contain spaces.
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13).map(Number) as [number, number];
  return (user + system) / CLOCK_TICKS_PER_SECOND;
}

async function timeScrapes(url: string) {
  const timed = async (encoding: "identity" | "gzip") => {
    const scrapes: Awaited<ReturnType<typeof scrape>>[] = [];
    while (scrapes.length < TIMED_SCRAPES) {
      await sleep(2 * SECOND_MS);
      scrapes.push(await scrape(url, encoding));
    }
    return { mb: scrapes[0]!.body.length / 1e6, ms: median(scrapes.map(({ tookMs }) => tookMs)) };
  };
  const [plain, gzip] = [await timed("identity"), await timed("gzip")];
  return { plainMb: plain.mb, plainMs: plain.ms, gzipMb: gzip.mb, gzipMs: gzip.ms };
}

/** Routes of the JSON API whose response times are measured. */
export const API_PATHS = ["status", "fleet", "nodes", "budget", "history"];
/** Number of rounds in which each route is requested. The median is shown. */
const API_ROUNDS = 5;
const REQUESTS_PER_ROUND = 5;
/** Pause instead of a request, in rounds without requests. */
const QUIET_MS = 30;

/** Measures the JSON API, and the event loop's delay while it answers and in rounds without requests. */
async function timeApi(url: string) {
  const quiet: number[] = [];
  const requested = API_PATHS.map((path) => ({ path, ms: [] as number[], delays: [] as number[] }));
  const delayDuring = async (work: () => Promise<void>) => {
    await readPage(url);
    for (let request = 0; request < REQUESTS_PER_ROUND; request++) await work();
    return (await readPage(url)).delayMaxMs;
  };
  for (let round = 0; round < API_ROUNDS; round++) {
    quiet.push(await delayDuring(() => sleep(QUIET_MS)));
    for (const { path, ms, delays } of requested)
      delays.push(await delayDuring(async () => void ms.push(await requestApi(url, path))));
  }
  return {
    apiMs: Math.max(...requested.map(({ ms }) => median(ms))),
    apiDelayMs: Math.max(...requested.map(({ delays }) => median(delays))),
    quietDelayMs: median(quiet),
  };
}

/** Requests a route, and returns the milliseconds until the complete body was received. */
async function requestApi(url: string, path: string): Promise<number> {
  const startedAt = performance.now();
  const response = await fetch(`${url}/api/v1/${path}`);
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`/api/v1/${path} answered ${response.status}`);
  return performance.now() - startedAt;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill();
  await exited;
}
