#!/usr/bin/env node
import { Command, CommanderError, InvalidArgumentError } from "commander";
import { parseDuration } from "./base/duration.ts";
import { check } from "./commands/check.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, EXIT_USAGE, type ExitCode } from "./commands/context.ts";
import { demo } from "./commands/demo.ts";
import { healthcheck } from "./commands/healthcheck.ts";
import { run } from "./commands/run.ts";
import { simulate } from "./commands/simulate.ts";
import { VERSION } from "./version.ts";

const DEFAULT_CONFIG = "/etc/proxywarden/proxywarden.yaml";
const DEFAULT_URL = "http://127.0.0.1:9713";

/** Reads an option as a whole number within bounds; a usage error names them. */
const whole = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < min || value > max) {
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  }
  return value;
};

const speed = (text: string) => {
  const value = Number(text);
  if (!(value >= 0.1 && value <= 1_000)) throw new InvalidArgumentError("It must be a number from 0.1 to 1000.");
  return value;
};

const duration = (text: string) => {
  const read = parseDuration(text);
  if (!read.ok) throw new InvalidArgumentError(`Expected: ${read.error}.`);
  return read.value;
};

const output = (text: string) => {
  if (text !== "text" && text !== "json") throw new InvalidArgumentError("It must be text or json.");
  return text;
};

function createProgram(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const program = new Command("proxywarden")
    .description("Watches a network of proxy nodes through its management API and exports it to Prometheus.")
    .version(context.version)
    .option("--debug", "show stack traces")
    .exitOverride();
  const add = <Options>(
    name: string,
    description: string,
    command: (options: Options, context: CommandContext) => Promise<ExitCode>,
  ) =>
    program
      .command(name)
      .description(description)
      .exitOverride()
      .action(async (options: Options) => finish(await command(options, context)));

  add("run", "the daemon; SIGHUP reloads the configuration, SIGTERM stops it", run).requiredOption(
    "--config <file>",
    "the configuration",
    DEFAULT_CONFIG,
  );
  add("demo", "a simulated service and the daemon in one process, telling what happens", demo)
    .option("--nodes <count>", "nodes of the simulated network", whole(0, 200_000), 500)
    .option("--sessions <count>", "sessions of the simulated network", whole(0, 2_000_000), 5_000)
    .option("--seed <number>", "everything simulated follows from it", whole(0, 4_294_967_295), 1)
    .option("--speed <factor>", "how much faster than real its time runs", speed, 1)
    .option("--port <port>", "where the daemon listens; 0: any free port", whole(0, 65_535), 9713)
    .option("--for <duration>", "end by itself after this, such as 5m", duration);
  add("simulate", "the simulated service alone, for any client", simulate)
    .option("--scenario <file>", "the network, the service's choices and the faults")
    .option("--nodes <count>", "nodes, over the scenario's", whole(0, 1_000_000))
    .option("--sessions <count>", "sessions, over the scenario's", whole(0, 10_000_000))
    .option("--seed <number>", "seed, over the scenario's", whole(0, 4_294_967_295))
    .option("--host <address>", "where it listens", "127.0.0.1")
    .option("--port <port>", "where it listens; 0: any free port", whole(0, 65_535), 9714);
  add("check", "whether a configuration is valid: every error, with its line and column", check)
    .requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG)
    .option("--output <format>", "text or json", output, "text");
  add("healthcheck", "whether the daemon answers: the container's health check", healthcheck).option(
    "--url <url>",
    "where the daemon is",
    DEFAULT_URL,
  );
  return program;
}

async function main(): Promise<ExitCode> {
  const stop = new AbortController();
  // A second signal finds no handler, and ends the process at once: nobody should have to reach for kill -9.
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stop.abort());
  let code: ExitCode = EXIT_FINE;
  const context: CommandContext = {
    env: process.env,
    out: process.stdout,
    err: process.stderr,
    stop: stop.signal,
    onHangup: (then) => process.on("SIGHUP", then),
    version: VERSION,
  };
  const program = createProgram(context, (finished) => {
    code = finished;
  });
  try {
    await program.parseAsync(process.argv);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_FINE : EXIT_USAGE;
    const trace = program.opts<{ debug?: boolean }>().debug === true;
    process.stderr.write(
      `proxywarden: ${error instanceof Error ? (trace && error.stack) || error.message : String(error)}\n`,
    );
    return EXIT_BAD;
  }
  return code;
}

// Whatever a library left running must not keep a finished command alive.
process.exit(await main());
