import { enableCompileCache } from "node:module";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parentPort, workerData } from "node:worker_threads";
import { type FuzzModule, type FuzzTarget, randomOfCase } from "./target.ts";
import { HEARTBEAT, type WorkerReport, type WorkerTask } from "./worker-task.ts";

/** Cases before the heap baseline, in which caches fill and code is compiled. */
const WARMUP_CASES = 2_000;
const HEAP_CHECK_CASES = 25_000;

// Loading the modules of a target takes longer than its cases.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url)));

const task = workerData as WorkerTask;
const heartbeat = new Int32Array(task.heartbeat);
const send = (report: WorkerReport) => parentPort!.postMessage(report);
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));
const currentCase = (): number => Atomics.load(heartbeat, HEARTBEAT.number);

process.on("unhandledRejection", (error) => send({ kind: "unhandled", number: currentCase(), detail: textOf(error) }));
process.on("uncaughtException", (error) => send({ kind: "unhandled", number: currentCase(), detail: textOf(error) }));

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
      // An unhandled rejection is reported at the end of a turn: wait for it, so that it is assigned to this case.
      await nextTurn();
    }
  } catch (error) {
    send({ kind: "exception", number, detail: textOf(error) });
  }
  // CPU time, because on a busy machine any case may have to wait.
  const { user, system } = process.threadCpuUsage(before);
  const tookMs = (user + system) / 1_000;
  if (tookMs > task.slowMs) send({ kind: "slow", number, detail: `the case took ${Math.round(tookMs)} ms` });
}

const { createTarget } = (await import(task.module)) as FuzzModule;
const target = await createTarget();
Atomics.store(heartbeat, HEARTBEAT.isReady, 1);
let baseline: number | null = null;
let growth = 0;
for (let number = task.from; number < task.to; number++) {
  await runCase(target, number);
  const cases = number - task.from + 1;
  if (cases === WARMUP_CASES) baseline = heapBytes();
  const isHeapCheck = cases % HEAP_CHECK_CASES === 0 || number === task.to - 1;
  if (baseline === null || !isHeapCheck) continue;
  growth = heapBytes() - baseline;
  if (growth <= task.heapGrowthBytesMax) continue;
  send({ kind: "memory", number, detail: `the heap grew by ${growth} bytes in ${cases} cases` });
  break;
}
await target.close?.();
send({ kind: "done", heapGrowthBytes: growth });
