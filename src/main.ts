#!/usr/bin/env -S MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=32768 node --max-semi-space-size=4 --v8-pool-size=1
import { setTimeout as sleep } from "node:timers/promises";
import { errorMessage } from "./base/result.ts";
import {
  CommandFailure,
  EXIT_FAILURE,
  EXIT_OK,
  type ExitCode,
  reportFailure,
  untilAborted,
  VERSION,
} from "./cli/context.ts";
import { runCommandLine } from "./cli/program.ts";

/**
 * A process manager signals all processes of a service, and npm forwards its signal to its child. A second signal
 * within this time of the first is therefore taken for a copy of it.
 */
const FORWARDED_SIGNAL_MS = 1_000;
/** Time for the last output after a signal. */
const LAST_OUTPUT_MS = 1_000;

async function main(): Promise<ExitCode> {
  const stop = new AbortController();
  let firstSignalAt = Number.POSITIVE_INFINITY;
  // The daemon then stops as `src/daemon/shutdown.ts` says. A second signal ends the process immediately.
  // Process 1 of a container has no default action for signals.
  const onSignal = () => {
    if (performance.now() - firstSignalAt > FORWARDED_SIGNAL_MS) process.exit(EXIT_FAILURE);
    firstSignalAt = Math.min(firstSignalAt, performance.now());
    stop.abort();
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, onSignal);
  let outputError = null as NodeJS.ErrnoException | null;
  process.stdout.on("error", (error) => {
    outputError ??= error;
    // The reader may close the pipe, as head does. That is no error of a command that is not finished.
    stop.abort(new CommandFailure([], EXIT_OK));
  });
  process.stderr.on("error", () => {});
  const exitCode = await runCommandLine(process.argv.slice(2), {
    env: process.env,
    out: process.stdout,
    err: process.stderr,
    stop: stop.signal,
    onSighup: (then) => process.on("SIGHUP", then),
    version: VERSION,
  });
  // Errors of earlier writes are known once a later one is complete.
  const written = new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  // After a signal, a paused reader no longer keeps the process.
  const givenUp = untilAborted(stop.signal).then(() => sleep(LAST_OUTPUT_MS));
  await Promise.race([written, givenUp]);
  if (outputError === null || outputError.code === "EPIPE") return exitCode;
  return reportFailure(`can't write standard output: ${errorMessage(outputError)}`, { err: process.stderr });
}

// Timers or sockets of libraries must not keep the process alive after the command.
process.exit(await main());
