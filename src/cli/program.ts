import { Command } from "commander";
import { operatorCommandTable } from "../web/api/operator-commands.ts";
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
import { type CommandContext, EXIT_OK, type ExitCode, type OutputOption } from "./context.ts";
import { TOKEN_VARIABLE } from "./daemon-api/client.ts";
import { runDemo } from "./demo.ts";
import { type ExplainOptions, runExplain } from "./explain.ts";
import { runHealthcheck } from "./healthcheck.ts";
import { type OperatorCommandOptions, sendOperatorCommand } from "./operator-commands.ts";
import { type ColorOption, withColorOption } from "./output/color.ts";
import { runPlan } from "./plan.ts";
import { runPolicyDiff } from "./policy-diff.ts";
import { runPolicyTests } from "./policy-test.ts";
import { runDaemon } from "./run.ts";
import { runSimulate } from "./simulate.ts";

/** Runs a command with its options and arguments. */
type CommandRunner<Options> = (options: Options, context: CommandContext, args: readonly string[]) => Promise<ExitCode>;

type AddCommand = <Options>(
  usage: string,
  description: string,
  example: string,
  run: CommandRunner<Options>,
  parent?: Command,
) => Command;

/** Creates the command line. `finish` is called with the exit code of the chosen command. */
export function createProgram(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const program = new Command("proxywarden")
    .description("Monitors a network of proxy nodes, exports it to Prometheus, and remediates unhealthy nodes.")
    .version(context.version)
    .option("--debug", "show stack traces")
    .option("--color", "always color the output")
    .option("--no-color", "never color the output; the default follows the terminal, NO_COLOR and FORCE_COLOR")
    .addHelpText("after", PROGRAM_EXAMPLES);
  const colorOption = () => program.opts<{ color?: ColorOption }>().color;
  withSharedBehavior(program, context, colorOption);
  const add: AddCommand = <Options>(
    usage: string,
    description: string,
    example: string,
    run: CommandRunner<Options>,
    parent = program,
  ) => {
    const added = withSharedBehavior(parent.command(usage).description(description), context, colorOption);
    added.addHelpText("after", `\nExample:\n  $ proxywarden ${example}`);
    return added.action(async () => {
      const colored = { ...context, env: withColorOption(context.env, colorOption()) };
      finish(await run(added.opts() as Options, colored, added.args));
    });
  };

  addDaemonCommands(add);
  addPlanningCommands(add);
  addClientCommands(add);
  const policy = withSharedBehavior(program.command("policy").description("work with policies"), context, colorOption)
    .helpCommand(false)
    .addHelpText("after", "\nExample:\n  $ proxywarden policy diff before.yaml after.yaml");
  addPolicyCommands(add, policy);
  addShellCommands(add, program);
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

/** `run`, `demo` and `simulate`. */
function addDaemonCommands(add: AddCommand): void {
  const run = "run the daemon; SIGHUP reloads the configuration, SIGTERM stops it";
  withConfig(add("run", run, "run --config proxywarden.yaml", runDaemon));
  const demo = "run a simulated service and the daemon in one process, and print what happens";
  add("demo", demo, "demo --nodes 2000 --speed 10 --for 5m", runDemo)
    .option("--nodes <count>", "number of simulated nodes", wholeNumberParser(0, 200_000), 500)
    .option("--sessions <count>", "number of simulated sessions", wholeNumberParser(0, 2_000_000), 5_000)
    .option("--seed <number>", "seed of the simulation", wholeNumberParser(0, 4_294_967_295), 1)
    .option("--speed <factor>", "simulation speed, as a multiple of real time", parseSpeed, 1)
    .option("--port <port>", "port the daemon listens on; 0 picks a free port", wholeNumberParser(0, 65_535), 9713)
    .option("--for <duration>", "stop after this long, such as 5m", parseDurationOption);
  const example = "simulate --scenario config/scenarios/rough-day.yaml --port 9714";
  add("simulate", "run only the simulated service, for any client", example, runSimulate)
    .option("--scenario <file>", "scenario file: the network, the service's behavior and the faults")
    .option("--nodes <count>", "number of nodes; overrides the scenario", wholeNumberParser(0, 1_000_000))
    .option("--sessions <count>", "number of sessions; overrides the scenario", wholeNumberParser(0, 10_000_000))
    .option("--seed <number>", "seed; overrides the scenario", wholeNumberParser(0, 4_294_967_295))
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <port>", "port to listen on; 0 picks a free port", wholeNumberParser(0, 65_535), 9714);
}

/** `check` and `plan`, which show what a configuration does. */
function addPlanningCommands(add: AddCommand): void {
  const check = "check a configuration: list every error with its line and column";
  const fleetSize = "fleet size to show the limits for; default: the size last seen by the daemon";
  withOutput(
    withConfig(add("check", check, "check --config proxywarden.yaml --output json", runCheck)).option(
      "--nodes <count>",
      fleetSize,
      wholeNumberParser(1, 10_000_000),
    ),
  );
  const plan = "show how often each collector polls, how old its data gets, and which limit slows it down";
  const nodes = "number of nodes; default: as last seen by the daemon, or as the service reports";
  withOutput(
    withConfig(add("plan", plan, "plan --config proxywarden.yaml --nodes 5000 --sessions 50000", runPlan))
      .option("--nodes <count>", nodes, wholeNumberParser(0, 10_000_000))
      .option("--sessions <count>", "number of sessions; same default", wholeNumberParser(0, 1_000_000_000)),
  );
}

/** Commands that ask the running daemon, or send it an operator command. */
function addClientCommands(add: AddCommand): void {
  const healthcheck = "check that the daemon answers; for use as a container health check";
  withUrl(
    add("healthcheck", healthcheck, "healthcheck", runHealthcheck).option(
      "--config <file>",
      "check the daemon of this configuration at its listen address instead of --url",
    ),
  );
  const explain = "explain why a node was or was not acted on: policies, hold reasons and actions";
  const at = "explain the state at this time, such as 2026-11-21T03:12:00Z, or this long ago, such as 2h";
  withOutput(
    withUrl(
      add<ExplainOptions>("explain <node>", explain, "explain node_42 --at 2h", (options, given, [node]) =>
        runExplain(node!, options, given),
      )
        .option("--config <file>", "read the journal of this configuration instead of asking the daemon")
        .option("--at <time>", at, parseTimeOption),
    ),
  );
  const approvals = "list the actions waiting for approval, with their evidence";
  withToken(add("approvals", approvals, "approvals", runApprovals));
  for (const route of operatorCommandTable) {
    const usage = route.about === undefined ? route.name : `${route.name} <${route.about}>`;
    const words = [route.name, route.example, "--token-file /run/secrets/alice"].filter(Boolean).join(" ");
    const added = add<OperatorCommandOptions>(usage, route.description, words, (options, given, [id]) =>
      sendOperatorCommand(route, id, options, given),
    );
    if (route.hasReason) added.option("--reason <text>", "reason to record in the journal");
    withToken(added);
  }
}

/** Commands that test and compare policies. */
function addPolicyCommands(add: AddCommand, policy: Command): void {
  const test = "run policy unit tests: fleet states in, expected verdicts and actions out";
  const testExample = "test config/policies/tests/offline.yaml";
  const runTests: CommandRunner<OutputOption> = (options, given, files) => runPolicyTests(files, options, given);
  withOutput(add("test <files...>", test, `policy ${testExample}`, runTests, policy));
  withOutput(add("test <files...>", "same as policy test", testExample, runTests));
  const diff = "compare two policy files: which nodes are newly acted on, and which no longer";
  const example = "policy diff before.yaml config/policies/offline.yaml";
  const runDiff: CommandRunner<OutputOption> = (options, given, files) => runPolicyDiff(files, options, given);
  withOutput(add("diff <old> <new>", diff, example, runDiff, policy));
}

/** `completion` and `help`. */
function addShellCommands(add: AddCommand, program: Command): void {
  const example = "completion bash > ~/.local/share/bash-completion/completions/proxywarden";
  add("completion <shell>", "print a shell completion script", example, (_options, given, [shell]) =>
    runCompletion(shell as Shell, program, given),
  ).registeredArguments[0]!.choices(SHELLS);
  add("help [command...]", "show the help of a command", "help explain", async (_options, _given, names) => {
    printHelp(program, names);
    return EXIT_OK;
  });
}

const withConfig = (command: Command): Command =>
  command.requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG);

const withOutput = (command: Command): Command =>
  command.option("--output <format>", "text or json", parseOutputFormat, "text");

const HTTP_CONFIG_FILE = "HTTP client config file with tls_config, basic_auth and authorization, in Prometheus format";

const withUrl = (command: Command): Command =>
  command
    .option("--url <url>", "URL of the daemon", parseDaemonUrl, DEFAULT_URL)
    .option("--http-config-file <file>", HTTP_CONFIG_FILE);

const withToken = (command: Command): Command =>
  withOutput(
    withUrl(command).option(
      "--token-file <file>",
      `file of your operator token; default: the variable ${TOKEN_VARIABLE}`,
    ),
  );
