import { type App, startApp } from "../daemon/daemon.ts";
import { formatProblem } from "../config/diagnostics/problem.ts";
import type { AppParts } from "../daemon/runtime.ts";
import { createMemoryStore, openStore } from "../journal/sqlite.ts";
import { createBell } from "../platform/cron.ts";
import { createSystemClock } from "../platform/clock.ts";
import { createLog } from "../platform/log.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { readConfigInThread } from "./config/config-thread.ts";
import { aborted, type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode, readTextFile } from "./context.ts";

/** `run --config FILE`: the daemon, until it is told to stop. */
export async function run({ config: file }: { config: string }, context: CommandContext): Promise<ExitCode> {
  const first = readConfigFile(file, context.env);
  if (!first.ok) return refuse(first.error, context);
  const log = createLog(first.value.config.log);
  let atStart: typeof first | null = first;
  const parts: AppParts = {
    clock: createSystemClock(),
    bell: createBell(),
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
    openStore,
    createMemoryStore,
  };
  let app: App | null = null;
  // From the beginning: a SIGHUP that comes during the start must not end the process.
  context.onHangup(() => void app?.reload());
  const started = await startApp(parts);
  if (!started.ok) return refuse(started.error, context);
  app = started.value;
  await aborted(context.stop);
  log.info({}, "stopping");
  await started.value.stop();
  return EXIT_FINE;
}

function refuse(problems: readonly string[], { err }: CommandContext): ExitCode {
  err.write(problems.map((problem) => `proxywarden: ${problem}\n`).join(""));
  return EXIT_BAD;
}
