import { Command } from "commander";
import { runApprovals } from "./approvals.ts";
import {
  DEFAULT_CONFIG,
  DEFAULT_URL,
  parseDaemonUrl,
  parseDurationOption,
  parseOutputFormat,
  parseSpeed,
  parseTimeOption,
  wholeNumberParser,
} from "./arguments/options.ts";
import { printHelp, withSharedBehavior } from "./arguments/usage-errors.ts";
import { runCheck } from "./check.ts";
import { runCompletion, SHELLS, type Shell } from "./completion.ts";
import { type CommandContext, EXIT_OK, type ExitCode } from "./context.ts";
import { TOKEN_VARIABLE } from "./daemon-api/client.ts";
import { runDemo } from "./demo.ts";
import { type ExplainOptions, runExplain } from "./explain.ts";
import { runHealthcheck } from "./healthcheck.ts";
import {
  type OperatorCliCommand,
  type OperatorCommandOptions,
  operatorCliCommands,
  sendOperatorCommand,
} from "./operator-commands.ts";
import { type ColorOption, withColorOption } from "./output/colour.ts";
import { runPlan } from "./plan.ts";
import { type PolicyDiffOptions, runPolicyDiff } from "./policy-diff.ts";
import { runDaemon } from "./run.ts";
import { runSimulate } from "./simulate.ts";
import { runPolicyTests, type TestOptions } from "./test.ts";

/** What runs a command: its arguments, as many as it takes, and its options. */
type CommandRunner<Options> = (args: readonly string[], options: Options, context: CommandContext) => Promise<ExitCode>;

/** What runs a command without an argument. */
type PlainCommandRunner<Options> = (options: Options, context: CommandContext) => Promise<ExitCode>;

/** Creates the command line. `finish` is called with the exit code of the chosen command. */
export function createProgram(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const program = new Command("proxywarden")
    .description("Watches a network of proxy nodes through its management API, exports it to Prometheus, and heals it.")
    .version(context.version)
    .option("--debug", "show stack traces")
    .option("--color", "always color the output")
    .option("--no-color", "never color the output; the default follows the terminal, NO_COLOR and FORCE_COLOR")
    .addHelpText("after", PROGRAM_EXAMPLES);
  const colorOption = () => program.opts<{ color?: ColorOption }>().color;
  withSharedBehavior(program, context, colorOption);
  const addWith = <Options>(
    usage: string,
    description: string,
    command: CommandRunner<Options>,
    example: string,
    parent = program,
  ) => {
    const added = withSharedBehavior(parent.command(usage).description(description), context, colorOption);
    added.addHelpText("after", `\nExample:\n  $ proxywarden ${example}`);
    return added.action(async () => {
      const wished = { ...context, env: withColorOption(context.env, colorOption()) };
      finish(await command(added.args, added.opts() as Options, wished));
    });
  };
  const add = <Options>(name: string, description: string, command: PlainCommandRunner<Options>, example: string) =>
    addWith<Options>(name, description, (_args, options, given) => command(options, given), example);

  addDaemonCommands(add);
  addPlanningCommands(add);
  add(
    "healthcheck",
    "check that the daemon answers; for use as a container health check",
    runHealthcheck,
    "healthcheck",
  )
    .option("--config <file>", "check the daemon of this configuration at its listen address instead of --url")
    .option(...urlOption, parseDaemonUrl, DEFAULT_URL)
    .option(...httpConfigOption);
  addWith<ExplainOptions>(
    "explain <node>",
    "explain why a node was or was not acted on: policies, hold reasons and actions",
    ([node], options, given) => runExplain(node!, options, given),
    "explain node_42 --config /etc/proxywarden/proxywarden.yaml --at 2h",
  )
    .option("--config <file>", "read the journal of this configuration instead of asking the daemon")
    .option(
      "--at <time>",
      "explain the state at this time, such as 2026-11-21T03:12:00Z, or this long ago, such as 2h",
      parseTimeOption,
    )
    .option(...urlOption, parseDaemonUrl, DEFAULT_URL)
    .option(...httpConfigOption)
    .option(...outputOption, parseOutputFormat, "text");
  withDaemonOptions(
    add("approvals", "list the actions waiting for approval, with their evidence", runApprovals, "approvals"),
  );
  addOperatorCommands(addWith);
  const policy = withSharedBehavior(program.command("policy").description("work with policies"), context, colorOption)
    .helpCommand(false)
    .addHelpText("after", "\nExample:\n  $ proxywarden policy diff before.yaml after.yaml");
  addPolicyCommands(addWith, policy);
  addShellCommands(addWith, program);
  return program;
}

const PROGRAM_EXAMPLES = `
Examples:
  $ proxywarden demo                                 try it on a simulated network
  $ proxywarden check --config proxywarden.yaml      check a configuration and list every error
  $ proxywarden run --config proxywarden.yaml        run the daemon
  $ proxywarden explain node_42                      show why a node was or was not rebooted

Exit codes: 0 success; 1 the check or operation failed; 2 usage error.
Use "proxywarden COMMAND --help" for details.`;

type AddCommand = <Options>(
  name: string,
  description: string,
  command: PlainCommandRunner<Options>,
  example: string,
) => Command;

type AddCommandWithArguments = <Options>(
  usage: string,
  description: string,
  command: CommandRunner<Options>,
  example: string,
  parent?: Command,
) => Command;

/** The daemon itself, and what stands in for its surroundings. */
function addDaemonCommands(add: AddCommand): void {
  add(
    "run",
    "run the daemon; SIGHUP reloads the configuration, SIGTERM stops it",
    runDaemon,
    "run --config proxywarden.yaml",
  ).requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG);
  add(
    "demo",
    "run a simulated service and the daemon in one process, and print what happens",
    runDemo,
    "demo --nodes 2000 --speed 10 --for 5m",
  )
    .option("--nodes <count>", "number of simulated nodes", wholeNumberParser(0, 200_000), 500)
    .option("--sessions <count>", "number of simulated sessions", wholeNumberParser(0, 2_000_000), 5_000)
    .option("--seed <number>", "seed of the simulation", wholeNumberParser(0, 4_294_967_295), 1)
    .option("--speed <factor>", "simulation speed, as a multiple of real time", parseSpeed, 1)
    .option("--port <port>", "port the daemon listens on; 0 picks a free port", wholeNumberParser(0, 65_535), 9713)
    .option("--for <duration>", "stop after this long, such as 5m", parseDurationOption);
  add(
    "simulate",
    "run only the simulated service, for any client",
    runSimulate,
    "simulate --scenario config/scenarios/rough-day.yaml --port 9714",
  )
    .option("--scenario <file>", "scenario file: the network, the service's behavior and the faults")
    .option("--nodes <count>", "number of nodes; overrides the scenario", wholeNumberParser(0, 1_000_000))
    .option("--sessions <count>", "number of sessions; overrides the scenario", wholeNumberParser(0, 10_000_000))
    .option("--seed <number>", "seed; overrides the scenario", wholeNumberParser(0, 4_294_967_295))
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <port>", "port to listen on; 0 picks a free port", wholeNumberParser(0, 65_535), 9714);
  add(
    "check",
    "check a configuration: list every error with its line and column",
    runCheck,
    "check --config proxywarden.yaml --output json",
  )
    .requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG)
    .option(
      "--nodes <count>",
      "fleet size to show the limits for; default: the size last seen by the daemon",
      wholeNumberParser(1, 10_000_000),
    )
    .option(...outputOption, parseOutputFormat, "text");
}

/** Commands that show what a configuration would do. */
function addPlanningCommands(add: AddCommand): void {
  add(
    "plan",
    "show how often each collector polls, how old its data gets, and which limit slows it down",
    runPlan,
    "plan --config /etc/proxywarden/proxywarden.yaml --nodes 5000 --sessions 50000",
  )
    .requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG)
    .option(
      "--nodes <count>",
      "number of nodes; default: as last seen by the daemon, or as the service reports",
      wholeNumberParser(0, 10_000_000),
    )
    .option("--sessions <count>", "number of sessions; same default", wholeNumberParser(0, 1_000_000_000))
    .option(...outputOption, parseOutputFormat, "text");
}

/** Operator commands for the running daemon. */
function addOperatorCommands(addWith: AddCommandWithArguments): void {
  for (const order of operatorCliCommands) {
    const added = addWith<OperatorCommandOptions>(
      order.route.about === undefined ? order.route.name : `${order.route.name} <${order.route.about}>`,
      order.description,
      ([id], options, given) => sendOperatorCommand(order.route, id, options, given),
      exampleOf(order),
    );
    if (order.route.hasReason) added.option("--reason <text>", "reason to record in the journal");
    withDaemonOptions(added);
  }
}

/** What judges policies by themselves. */
function addPolicyCommands(addWith: AddCommandWithArguments, policy: Command): void {
  addWith<TestOptions>(
    "test <files...>",
    "run policy unit tests: fleet states in, expected verdicts and actions out",
    runPolicyTests,
    "test config/policies/tests/offline.yaml",
  ).option(...outputOption, parseOutputFormat, "text");
  addWith<PolicyDiffOptions>(
    "diff <old> <new>",
    "compare two policy files: which nodes are newly acted on, and which no longer",
    runPolicyDiff,
    "policy diff before.yaml config/policies/offline.yaml",
    policy,
  ).option(...outputOption, parseOutputFormat, "text");
}

/** What makes the rest easy to type and to look up. */
function addShellCommands(addWith: AddCommandWithArguments, program: Command): void {
  const completing = addWith<object>(
    "completion <shell>",
    "print a shell completion script",
    async ([shell], _options, given) => runCompletion(shell as Shell, program, given),
    "completion bash > ~/.local/share/bash-completion/completions/proxywarden",
  );
  completing.registeredArguments[0]!.choices(SHELLS);
  addWith<object>(
    "help [command...]",
    "show the help of a command",
    async (names) => {
      printHelp(program, names);
      return EXIT_OK;
    },
    "help explain",
  );
}

const urlOption = ["--url <url>", "URL of the daemon"] as const;
const httpConfigOption = [
  "--http-config-file <file>",
  "HTTP client config file with tls_config, basic_auth and authorization, in Prometheus format",
] as const;
const outputOption = ["--output <format>", "text or json"] as const;

/** The options by which a command reaches the running daemon. */
const withDaemonOptions = (command: Command): Command =>
  command
    .option(...urlOption, parseDaemonUrl, DEFAULT_URL)
    .option(...httpConfigOption)
    .option("--token-file <file>", `file of your operator token; else ${TOKEN_VARIABLE} is taken`)
    .option(...outputOption, parseOutputFormat, "text");

const exampleOf = ({ route: row, example }: OperatorCliCommand): string =>
  [row.name, example, "--token-file /run/secrets/alice"].filter((part) => part !== "").join(" ");
