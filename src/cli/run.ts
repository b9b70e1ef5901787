import { setFlagsFromString } from "node:v8";
import { formatProblem } from "../config/diagnostics/problem.ts";
import type { LoadedConfig } from "../config/load.ts";
import { type Daemon, startDaemon } from "../daemon/daemon.ts";
import type { DaemonDeps } from "../daemon/runtime.ts";
import { systemClock } from "../platform/clock.ts";
import { createLog } from "../platform/log.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { readConfigInThread } from "./config/config-thread.ts";
import { planWarnings } from "./config/plan-warnings.ts";
import { type CommandContext, CommandFailure, orFail, untilAborted } from "./context.ts";
import { openConfiguredStore } from "./state/state-store.ts";

/** Settings of V8's heap that NODE_OPTIONS does not accept. */
const HEAP_FLAGS = [
  // How much the heap may grow before a full collection. V8 would choose about 10% for the daemon of a large fleet. It
  // counts the buffers of list pages, which are outside the heap, so it would collect every few seconds, and each
  // collection blocks the event loop for up to 30 ms.
  "--heap-growing-percent=60",
  // Without this, V8 allocates the results of evaluations in the old generation, because those that it samples happen to
  // survive. Each round of policies then adds 30 MB to the heap, which only a full collection frees.
  "--no-allocation-site-pretenuring",
];

/** `run --config FILE`: runs the daemon until the process is asked to stop. */
export async function runDaemon({ config: file }: { config: string }, context: CommandContext): Promise<void> {
  for (const flag of HEAP_FLAGS) setFlagsFromString(flag);
  const first = orFail(readConfigFile(file, context.env));
  const log = createLog(first.config.log);
  const logWarnings = (loaded: LoadedConfig) => {
    const warnings = [...loaded.warnings, ...planWarnings(loaded)];
    for (const warning of warnings) log.warn({ problem: formatProblem(warning) }, "configuration warning");
  };
  const deps: DaemonDeps = {
    clock: systemClock,
    log,
    version: context.version,
    random: Math.random,
    async readConfig(stop) {
      const read = await readConfigInThread(file, context.env, stop);
      if (read.ok) logWarnings(read.value);
      return read;
    },
    openStore: (state) => openConfiguredStore(state, { clock: systemClock, log }),
  };
  let daemon: Daemon | null = null;
  let isReloadDue = false;
  // Registered before the start, because a SIGHUP during the start would otherwise end the process.
  context.onSighup(() => {
    if (daemon === null) isReloadDue = true;
    else void daemon.reload();
  });
  logWarnings(first);
  const stopped = untilAborted(context.stop).then(() => null);
  const started = await Promise.race([startDaemon(first, deps), stopped]);
  if (started === null) {
    // The start may wait for a database for longer than a stop may take.
    log.info({}, "stopped before the start was complete");
    return;
  }
  daemon = orFail(started);
  if (isReloadDue) void daemon.reload();
  const problem = await Promise.race([stopped, daemon.unusable ?? stopped]);
  log.info({}, "stopping");
  await daemon.stop();
  if (problem !== null) throw new CommandFailure(`state.postgres: ${problem}`);
}
