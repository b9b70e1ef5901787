import { formatProblem } from "../config/diagnostics/problem.ts";
import { type Daemon, startDaemon } from "../daemon/daemon.ts";
import type { DaemonDeps } from "../daemon/runtime.ts";
import { createMemoryStateStore, openStateStore } from "../journal/sqlite.ts";
import { createSystemClock } from "../platform/clock.ts";
import { createCron } from "../platform/cron.ts";
import { createLog } from "../platform/log.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { readConfigInThread } from "./config/config-thread.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, type ExitCode, readTextFile, untilAborted } from "./context.ts";

/** `run --config FILE`: the daemon, until it is told to stop. */
export async function runDaemon({ config: file }: { config: string }, context: CommandContext): Promise<ExitCode> {
  const first = readConfigFile(file, context.env);
  if (!first.ok) return printErrors(first.error, context);
  const log = createLog(first.value.config.log);
  let atStart: typeof first | null = first;
  const parts: DaemonDeps = {
    clock: createSystemClock(),
    cron: createCron(),
    random: Math.random,
    log,
    version: context.version,
    async readConfig() {
      const read = atStart ?? (await readConfigInThread(file, context.env, context.stop));
      atStart = null;
      if (!read.ok) return read;
      for (const warning of read.value.warnings) {
        log.warn({ problem: formatProblem(warning) }, "configuration warning");
      }
      return read;
    },
    readFile: readTextFile,
    openStore: openStateStore,
    createMemoryStore: createMemoryStateStore,
  };
  let app: Daemon | null = null;
  // From the beginning: a SIGHUP that comes during the start must not end the process.
  context.onSighup(() => void app?.reload());
  const started = await startDaemon(parts);
  if (!started.ok) return printErrors(started.error, context);
  app = started.value;
  await untilAborted(context.stop);
  log.info({}, "stopping");
  await started.value.stop();
  return EXIT_OK;
}

function printErrors(problems: readonly string[], { err }: CommandContext): ExitCode {
  err.write(problems.map((problem) => `proxywarden: ${problem}\n`).join(""));
  return EXIT_FAILURE;
}
