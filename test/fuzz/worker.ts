import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parentPort, workerData } from "node:worker_threads";
import { type FuzzModule, type FuzzTarget, randomOfCase } from "./target.ts";
import { HEARTBEAT, type WorkerReport, type WorkerTask } from "./worker-task.ts";

/** Cases whose memory is not counted: caches fill, and code is compiled. */
const WARMUP_CASES = 2_000;
const HEAP_LOOK_CASES = 25_000;

const task = workerData as WorkerTask;
const heartbeat = new Int32Array(task.heartbeat);
const report = (found: WorkerReport) => parentPort!.postMessage(found);
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));
const numberNow = (): number => Atomics.load(heartbeat, HEARTBEAT.number);

process.on("unhandledRejection", (error) => report({ kind: "unhandled", number: numberNow(), detail: textOf(error) }));
process.on("uncaughtException", (error) => report({ kind: "unhandled", number: numberNow(), detail: textOf(error) }));

function heapBytes(): number {
  collectGarbage();
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function runCase(target: FuzzTarget, number: number): Promise<void> {
  Atomics.store(heartbeat, HEARTBEAT.number, number);
  const input = target.generate(randomOfCase(task.seed, number));
  const before = process.threadCpuUsage();
  try {
    const running = target.run(input);
    if (running instanceof Promise) {
      await running;
      // A rejection that is left unhandled is told at the end of a turn: of this case's own.
      await nextTurn();
    }
  } catch (error) {
    report({ kind: "exception", number, detail: textOf(error) });
  }
  // Of the processor, and not of the clock: on a busy machine any case may wait.
  const { user, system } = process.threadCpuUsage(before);
  const tookMs = (user + system) / 1_000;
  if (tookMs > task.slowMs) report({ kind: "slow", number, detail: `it took ${Math.round(tookMs)} ms` });
}

const { createTarget } = (await import(task.module)) as FuzzModule;
const target = await createTarget();
Atomics.store(heartbeat, HEARTBEAT.isReady, 1);
let baseline: number | null = null;
let growth = 0;
for (let number = task.from; number < task.to; number++) {
  await runCase(target, number);
  const ran = number - task.from + 1;
  if (ran === WARMUP_CASES) baseline = heapBytes();
  const isLook = ran % HEAP_LOOK_CASES === 0 || number === task.to - 1;
  if (baseline === null || !isLook) continue;
  growth = heapBytes() - baseline;
  if (growth <= task.heapGrowthBytesMax) continue;
  report({ kind: "memory", number, detail: `the heap grew by ${growth} bytes in ${ran} cases` });
  break;
}
await target.close?.();
report({ kind: "done", heapGrowthBytes: growth });
