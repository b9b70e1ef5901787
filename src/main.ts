#!/usr/bin/env node
import { CommanderError } from "commander";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, EXIT_USAGE, type ExitCode, VERSION } from "./cli/context.ts";
import { createProgram } from "./cli/program.ts";

async function main(): Promise<ExitCode> {
  const stop = new AbortController();
  // A second signal ends the process at once. Process 1 of a container has no default action for signals.
  const onSignal = () => (stop.signal.aborted ? process.exit(EXIT_FAILURE) : stop.abort());
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, onSignal);
  // The reader may close the pipe, as head does. The command then stops with its usual exit code.
  process.stdout.on("error", () => stop.abort());
  process.stderr.on("error", () => {});
  let code: ExitCode = EXIT_OK;
  const context: CommandContext = {
    env: process.env,
    out: process.stdout,
    err: process.stderr,
    stop: stop.signal,
    onSighup: (then) => process.on("SIGHUP", then),
    version: VERSION,
  };
  const program = createProgram(context, (finished) => {
    code = finished;
  });
  try {
    await program.parseAsync(process.argv);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE;
    const trace = program.opts<{ debug?: boolean }>().debug === true;
    process.stderr.write(
      `proxywarden: ${error instanceof Error ? (trace && error.stack) || error.message : String(error)}\n`,
    );
    return EXIT_FAILURE;
  }
  return code;
}

// Timers or sockets of libraries must not keep the process alive after the command.
process.exit(await main());
