import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import { errorMessage, fail, type Result } from "../../base/result.ts";
import type { LoadedConfig } from "../../config/load.ts";

/** Input of the thread. */
export interface ConfigThreadInput {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
}

/** The file that the thread runs: JavaScript in a built package, TypeScript in a checkout. */
const WORKER_URL = new URL(`./config-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url);

/** Three times the memory that the largest accepted files need. */
const HEAP_MB_MAX = 512;

/** Reading the largest accepted files takes a few seconds. */
const READ_TIMEOUT_MS: DurationMs = MINUTE_MS;

/**
 * Loads a configuration file in a separate thread, because the largest accepted files take seconds and must not delay
 * scrapes, polling and verification. Also fails if `stop` aborts, or after a minute.
 */
export async function readConfigInThread(
  file: string,
  env: NodeJS.ProcessEnv,
  stop: AbortSignal,
): Promise<Result<LoadedConfig, readonly string[]>> {
  const workerData: ConfigThreadInput = { file, env: { ...env } };
  const thread = new Worker(WORKER_URL, { workerData, resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX } });
  const timeout = AbortSignal.timeout(READ_TIMEOUT_MS);
  try {
    const [read] = await once(thread, "message", { signal: AbortSignal.any([stop, timeout]) });
    return read as Result<LoadedConfig, readonly string[]>;
  } catch (error) {
    if (stop.aborted) return fail(["the daemon is stopping"]);
    if (timeout.aborted) return fail([`${file}: reading it took longer than a minute`]);
    return fail([`${file}: reading it failed: ${errorMessage(error)}`]);
  } finally {
    void thread.terminate();
  }
}
