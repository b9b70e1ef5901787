import { Worker } from "node:worker_threads";
import { type DurationMs, SECOND_MS } from "../../src/base/duration.ts";
import { type FuzzModule, randomOfCase } from "./target.ts";
import { type FailureKind, HEARTBEAT, type WorkerReport, type WorkerTask } from "./worker-task.ts";

/** A case that failed. */
export interface FuzzFailure {
  readonly target: string;
  readonly seed: number;
  readonly number: number;
  readonly kind: FailureKind;
  readonly detail: string;
  /** The case's input, as JSON. */
  readonly input: string;
  /** Number of cases that failed at the same place. */
  times: number;
}

/** The result of the cases of one target. */
export interface CampaignResult {
  readonly target: string;
  readonly cases: number;
  readonly failures: readonly FuzzFailure[];
  readonly heapGrowthBytes: number;
  readonly tookMs: DurationMs;
}

/** The cases to run, from `from` to `to` (excluded). */
export interface CampaignOptions {
  readonly name: string;
  /** URL of the target's module. */
  readonly module: string;
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  /** CPU time above which a case fails. Default: {@link SLOW_MS}. */
  readonly slowMs?: DurationMs;
  /** Wall time after which a case is aborted. Default: {@link HANG_MS}. */
  readonly hangMs?: DurationMs;
}

/** A case that takes more CPU time is run again alone, because the first run may have included a garbage collection. */
const SLOW_MS: DurationMs = SECOND_MS;
const HANG_MS: DurationMs = 10 * SECOND_MS;
/** The longest time for a thread to load its modules on a busy machine. */
const START_MS_MAX: DurationMs = 60 * SECOND_MS;
const CHECK_INTERVAL_MS: DurationMs = SECOND_MS / 4;
/** A target that fails at more places is abandoned. */
const PLACES_MAX = 10;
/** A thread that reports more failures is replaced. */
const REPORTS_MAX = 1_000;
const HEAP_MB_MAX = 512;
const HEAP_GROWTH_BYTES_MAX = 32 * 1_048_576;

/** Runs the cases of one target in a thread. The thread is replaced if a case hangs or exhausts its memory. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const { name, seed, to } = options;
  const began = performance.now();
  const failures = new Map<string, FuzzFailure>();
  let heapGrowthBytes = 0;
  let from = options.from;
  while (from < to && failures.size < PLACES_MAX) {
    const round = await runThread({ ...options, from });
    heapGrowthBytes = Math.max(heapGrowthBytes, round.heapGrowthBytes);
    for (const { kind, number, detail } of round.failures) {
      const isConfirmed = kind !== "slow" || (await isSlowAgain(options, number));
      if (!isConfirmed) continue;
      const place = placeOf(kind, detail);
      const known = failures.get(place);
      if (known !== undefined) known.times++;
      else {
        const input = await inputOf(options, number);
        failures.set(place, { target: name, seed, number, kind, detail, input, times: 1 });
      }
    }
    from = round.next;
  }
  const tookMs = performance.now() - began;
  return { target: name, cases: from - options.from, failures: [...failures.values()], heapGrowthBytes, tookMs };
}

/** Returns where in the source a case failed, to group cases that find the same defect. */
function placeOf(kind: FailureKind, detail: string): string {
  const place = /\/src\/\S+?:\d+/.exec(detail)?.[0] ?? detail.split("\n", 1)[0]!.replace(/\d+/g, "N");
  return `${kind} ${place}`;
}

/** Generates the input of a case again. */
async function inputOf({ module, seed }: CampaignOptions, number: number): Promise<string> {
  const { createTarget } = (await import(module)) as FuzzModule;
  const target = await createTarget();
  const input = JSON.stringify(target.generate(randomOfCase(seed, number)));
  await target.close?.();
  return input;
}

async function isSlowAgain(options: CampaignOptions, number: number): Promise<boolean> {
  const { failures } = await runThread({ ...options, from: number, to: number + 1 });
  return failures.length > 0;
}

type ReportedFailure = Extract<WorkerReport, { number: number }>;

/** The result of one thread. */
interface Round {
  readonly failures: readonly ReportedFailure[];
  /** The first case that the thread did not run. */
  readonly next: number;
  readonly heapGrowthBytes: number;
}

function runThread(options: CampaignOptions): Promise<Round> {
  const { module, seed, from, to, slowMs = SLOW_MS, hangMs = HANG_MS } = options;
  const shared = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
  const heartbeat = new Int32Array(shared);
  heartbeat[HEARTBEAT.number] = from;
  const task: WorkerTask = {
    module,
    seed,
    from,
    to,
    slowMs,
    heartbeat: shared,
    heapGrowthBytesMax: HEAP_GROWTH_BYTES_MAX,
  };
  const thread = new Worker(new URL("./worker.ts", import.meta.url), {
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
  });
  const failures: ReportedFailure[] = [];
  return new Promise((resolve) => {
    const number = () => Atomics.load(heartbeat, HEARTBEAT.number);
    let isSettled = false;
    const settle = (next: number, heapGrowthBytes = 0) => {
      isSettled = true;
      clearInterval(watchdog);
      void thread.terminate();
      resolve({ failures, next, heapGrowthBytes });
    };
    const abort = (kind: FailureKind, detail: string) => {
      if (isSettled) return;
      failures.push({ kind, number: number(), detail });
      settle(number() + 1);
    };
    const watchdog = watch(heartbeat, hangMs, (waitedMs) =>
      abort("hang", `the case did not end within ${Math.round(waitedMs)} ms`),
    );
    thread.on("message", (report: WorkerReport) => {
      if (report.kind === "done") return settle(to, report.heapGrowthBytes);
      failures.push(report);
      if (report.kind === "memory" || failures.length >= REPORTS_MAX) settle(report.number + 1);
    });
    thread.on("error", (error: NodeJS.ErrnoException) =>
      abort(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? "memory" : "unhandled", error.stack ?? error.message),
    );
    thread.on("exit", (code) => abort("exception", `the thread exited with code ${code}`));
  });
}

/** Calls `onHang` when a case or the start of the thread takes too long. */
function watch(heartbeat: Int32Array, hangMs: DurationMs, onHang: (waitedMs: DurationMs) => void): NodeJS.Timeout {
  let last = -1;
  let since = performance.now();
  return setInterval(() => {
    const number = Atomics.load(heartbeat, HEARTBEAT.number);
    const isReady = Atomics.load(heartbeat, HEARTBEAT.isReady) === 1;
    const now = performance.now();
    if (number !== last && isReady) [last, since] = [number, now];
    if (now - since > (isReady ? hangMs : START_MS_MAX)) onHang(now - since);
  }, CHECK_INTERVAL_MS);
}
