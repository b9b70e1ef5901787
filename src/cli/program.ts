import { Command, CommanderError } from "commander";
import { type DurationMs, parseDuration } from "../base/duration.ts";
import type { Result } from "../base/result.ts";
import { STANDARD_STREAM } from "../platform/text-file.ts";
import {
  type OperatorCommandRoute,
  operatorCommandTable,
  readEffectDuration,
  readReason,
} from "../web/api/operator-command-routes.ts";
import { runApprovals } from "./approvals.ts";
import {
  CONFIG,
  type CommandRow,
  DAEMON,
  OPERATOR,
  OUTPUT,
  onDemand,
  option,
  parseHost,
  parseSpeed,
  wholeNumber,
} from "./arguments/options.ts";
import { parsePastTime } from "./arguments/past-time.ts";
import { printHelp, withSharedBehavior } from "./arguments/usage-errors.ts";
import { runCompletion, SHELLS, type Shell } from "./completion.ts";
import {
  type CommandContext,
  CommandFailure,
  EXIT_OK,
  EXIT_USAGE,
  type ExitCode,
  PROGRAM,
  reportFailure,
} from "./context.ts";
import { VIEW_COMMANDS } from "./daemon-views/view-commands.ts";
import { runHealthcheck } from "./healthcheck.ts";
import { type OperatorCommandOptions, sendOperatorCommand } from "./operator-command-request.ts";
import { type ColorOption, withColorOption } from "./output/text.ts";
import { POLICY_COMMANDS } from "./policy/policy-commands.ts";

/** Creates the command line. */
export function createProgram(context: CommandContext): Command {
  const program = new Command(PROGRAM)
    .description("Monitors a network of proxy nodes, exports its data to Prometheus, and remediates unhealthy nodes.")
    .version(context.version)
    .option("--debug", "show stack traces")
    .option("--color", "always color the output")
    .option("--no-color", "never color the output; the default follows the terminal, NO_COLOR and FORCE_COLOR")
    .addHelpText("after", PROGRAM_EXAMPLES);
  const colorOption = () => program.opts<{ color?: ColorOption }>().color;
  withSharedBehavior(program, context, colorOption);

  const create = (parent: Command, usage: string, description: string, example: string): Command =>
    withSharedBehavior(parent.command(usage), context, colorOption)
      .description(description)
      .addHelpText("after", `\nExample:\n  $ ${PROGRAM} ${example}`);

  function add(parent: Command, { usage, description, example, options = [], run }: CommandRow): Command {
    const added = create(parent, usage, description, example);
    for (const each of options) added.addOption(each);
    return added.action(async () => {
      const colored = { ...context, env: withColorOption(context.env, colorOption()) };
      const { policies = [] } = added.opts<{ policies?: readonly string[] }>();
      const inputs = [...added.args, ...policies].filter((name) => name === STANDARD_STREAM);
      if (inputs.length > 1) throw new CommandFailure("standard input (-) can be given only once", EXIT_USAGE);
      await run(added.opts() as never, colored, added.args);
    });
  }

  for (const row of COMMANDS) add(program, row);
  const group = (name: string, description: string, example: string, rows: readonly CommandRow[]) => {
    const parent = create(program, name, description, example).helpCommand(false);
    for (const row of rows) add(parent, row);
  };
  group("policy", "test, compare and backtest policies", "policy diff before.yaml after.yaml", POLICY_COMMANDS);
  group("state", "export or import the journal", "state export --config proxywarden.yaml state.jsonl", STATE_COMMANDS);
  const completion = add(program, {
    usage: "completion <shell>",
    description: "print a completion script for bash, zsh or fish",
    example: "completion bash",
    run: (_, given, [shell, ...words]) => runCompletion(shell as Shell, words, program, given),
  });
  // The script of a shell passes the words that are typed as further arguments.
  completion.allowExcessArguments().registeredArguments[0]!.choices(SHELLS);
  add(program, {
    usage: "help [command...]",
    description: "show the help of a command",
    example: "help explain",
    async run(_options, _given, names) {
      printHelp(program, names);
    },
  });
  return program;
}

/** Runs a command line, given without the name of the program. Returns the exit code. Prints every error. */
export async function runCommandLine(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  const program = createProgram(context);
  try {
    await program.parseAsync(args, { from: "user" });
    return EXIT_OK;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE;
    return reportFailure(error, context, program.opts<{ debug?: boolean }>().debug);
  }
}

const PROGRAM_EXAMPLES = `
Examples:
  $ ${PROGRAM} demo                                 try it on a simulated network
  $ ${PROGRAM} check --config proxywarden.yaml      check a configuration and list every error
  $ ${PROGRAM} run --config proxywarden.yaml        run the daemon
  $ ${PROGRAM} status                               show what the daemon knows and what holds its actions
  $ ${PROGRAM} explain node_42                      show why a node was or was not rebooted

Exit codes: 0 success; 1 the check or operation failed; 2 usage error.
Use "${PROGRAM} COMMAND --help" for details.`;

const STATE_COMMANDS: readonly CommandRow[] = [
  {
    usage: "export <file>",
    description: "write the journal of a configuration as lines of JSON; - is standard output",
    example: "state export --config proxywarden.yaml state.jsonl",
    options: [CONFIG],
    run: onDemand(async () => (await import("./state/state.ts")).runStateExport),
  },
  {
    usage: "import <file>",
    description: "read an exported journal into the empty journal of a configuration; - is standard input",
    example: "state import --config proxywarden.yaml state.jsonl",
    options: [CONFIG],
    run: onDemand(async () => (await import("./state/state.ts")).runStateImport),
  },
];

const SEED_MAX = 4_294_967_295;
const PORT_MAX = 65_535;

const COMMANDS: readonly CommandRow[] = [
  {
    usage: "run",
    description: "run the daemon; SIGHUP reloads the configuration, SIGTERM stops it",
    example: "run --config proxywarden.yaml",
    options: [CONFIG],
    run: onDemand(async () => (await import("./run.ts")).runDaemon),
  },
  {
    usage: "demo",
    description: "run a simulated service and the daemon in one process, and print what happens",
    example: "demo --nodes 2000 --speed 10 --for 5m",
    options: [
      option("--nodes <count>", "number of simulated nodes", wholeNumber(0, 200_000), 500),
      option("--sessions <count>", "number of simulated sessions", wholeNumber(0, 2_000_000), 5_000),
      option("--seed <number>", "seed of the simulation", wholeNumber(0, SEED_MAX), 1),
      option("--speed <factor>", "simulation speed, as a multiple of real time", parseSpeed, 1),
      option("--port <port>", "port the daemon listens on; 0 picks a free port", wholeNumber(0, PORT_MAX), 9713),
      option("--for <duration>", "stop after this long, such as 5m", parseDuration),
    ],
    run: onDemand(async () => (await import("./demo.ts")).runDemo),
  },
  {
    usage: "simulate",
    description: "run only the simulated service, for any client",
    example: "simulate --scenario config/scenarios/rough-day.yaml --port 9714",
    options: [
      option("--scenario <file>", "scenario file: the network, the service's behavior and the faults"),
      option("--nodes <count>", "number of nodes; overrides the scenario", wholeNumber(0, 1_000_000)),
      option("--sessions <count>", "number of sessions; overrides the scenario", wholeNumber(0, 10_000_000)),
      option("--seed <number>", "seed; overrides the scenario", wholeNumber(0, SEED_MAX)),
      option("--host <address>", "address to listen on", parseHost, "127.0.0.1"),
      option("--port <port>", "port to listen on; 0 picks a free port", wholeNumber(0, PORT_MAX), 9714),
    ],
    run: onDemand(async () => (await import("./simulate.ts")).runSimulate),
  },
  {
    usage: "check",
    description: "check a configuration: list every error with its line and column",
    example: "check --config proxywarden.yaml --output json",
    options: [
      CONFIG,
      option(
        "--nodes <count>",
        "number of nodes for which to show limits and warnings; default: as shown by --probe, or as last seen by the daemon",
        wholeNumber(1, 10_000_000),
      ),
      option(
        "--probe",
        "query the service, read-only, for usage scale, pages, limits, headers and scopes; also check the queries and alerts in blocked_by",
      ),
      OUTPUT,
    ],
    run: onDemand(async () => (await import("./check.ts")).runCheck),
  },
  {
    usage: "plan",
    description: "show how often each collector polls, how old its data gets, and which limit slows it down",
    example: "plan --config proxywarden.yaml --nodes 5000 --sessions 50000",
    options: [
      CONFIG,
      option(
        "--nodes <count>",
        "number of nodes; default: as last seen by the daemon, or as the service reports",
        wholeNumber(0, 10_000_000),
      ),
      option("--sessions <count>", "number of sessions; same default", wholeNumber(0, 1_000_000_000)),
      OUTPUT,
    ],
    run: onDemand(async () => (await import("./plan.ts")).runPlan),
  },
  {
    usage: "healthcheck",
    description: "check that the daemon answers; for use as a container health check",
    example: "healthcheck",
    options: [
      option("--config <file>", "check the daemon of this configuration at its listen address instead of --url"),
      ...DAEMON,
    ],
    run: runHealthcheck,
  },
  {
    usage: "explain <node>",
    description: "explain why a node (id or name) was or was not acted on: policies, hold reasons and actions",
    example: "explain node_42 --at 2h",
    options: [
      option(
        "--config <file>",
        "read the journal of this configuration instead of asking the daemon; requires the id of the node",
      ),
      option(
        "--at <time>",
        "explain the state at this time, such as 2026-11-21T03:12:00Z, or this long ago, such as 2h",
        parsePastTime,
      ),
      ...OPERATOR,
    ],
    run: onDemand(async () => (await import("./explain.ts")).runExplain),
  },
  ...VIEW_COMMANDS,
  {
    usage: "approvals",
    description: "list the actions waiting for approval, and the approved ones not sent yet, with their evidence",
    example: "approvals",
    options: OPERATOR,
    run: runApprovals,
  },
  ...operatorCommandTable.map(operatorCommandRow),
];

/** Parses how long the effect of a command lasts. */
function parseEffect(text: string): Result<DurationMs, string> {
  const duration = parseDuration(text);
  return duration.ok ? readEffectDuration(text) : duration;
}

function operatorCommandRow(route: OperatorCommandRoute): CommandRow {
  const { name, about, description, example, hasReason, hasDuration } = route;
  const reason = hasReason ? [option("--reason <text>", "reason to record in the journal", readReason)] : [];
  const duration = hasDuration
    ? [option("--for <duration>", `end the ${name} after this long, such as 2h; default: never`, parseEffect)]
    : [];
  return {
    usage: about === undefined ? name : `${name} <${about}>`,
    description,
    example: [name, example, "--token-file /run/secrets/alice"].filter(Boolean).join(" "),
    options: [...duration, ...reason, ...OPERATOR],
    run: (options: OperatorCommandOptions, context, [id]) => sendOperatorCommand(route, id, options, context),
  };
}
