import { Command } from "commander";
import { approvals } from "./approvals.ts";
import { check } from "./check.ts";
import { type ColourWish, withColourWish } from "./output/colour.ts";
import { completion, SHELLS, type Shell } from "./completion.ts";
import { type CommandContext, EXIT_FINE, type ExitCode } from "./context.ts";
import { TOKEN_VARIABLE } from "./daemon-api/client.ts";
import { demo } from "./demo.ts";
import { type ExplainOptions, explain } from "./explain.ts";
import { healthcheck } from "./healthcheck.ts";
import { DEFAULT_CONFIG, DEFAULT_URL, daemonUrl, duration, moment, output, speed, whole } from "./arguments/options.ts";
import { giveOrder, type OrderCommand, type OrderOptions, orderCommands } from "./operator-commands.ts";
import { plan } from "./plan.ts";
import { type PolicyDiffOptions, policyDiff } from "./policy-diff.ts";
import { run } from "./run.ts";
import { simulate } from "./simulate.ts";
import { type TestOptions, test } from "./test.ts";
import { printHelp, withManners } from "./arguments/usage-errors.ts";

/** What runs a command: its arguments, as many as it takes, and its options. */
type Run<Options> = (args: readonly string[], options: Options, context: CommandContext) => Promise<ExitCode>;

/** What runs a command without an argument. */
type Plain<Options> = (options: Options, context: CommandContext) => Promise<ExitCode>;

/** Creates the command line. `finish` is called with the exit code of the chosen command. */
export function createProgram(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const program = new Command("proxywarden")
    .description("Watches a network of proxy nodes through its management API, exports it to Prometheus, and heals it.")
    .version(context.version)
    .option("--debug", "show stack traces")
    .option("--color", "always color the output")
    .option("--no-color", "never color the output; the default follows the terminal, NO_COLOR and FORCE_COLOR")
    .addHelpText("after", PROGRAM_EXAMPLES);
  const wish = () => program.opts<{ color?: ColourWish }>().color;
  withManners(program, context, wish);
  const addWith = <Options>(
    usage: string,
    description: string,
    command: Run<Options>,
    example: string,
    parent = program,
  ) => {
    const added = withManners(parent.command(usage).description(description), context, wish);
    added.addHelpText("after", `\nExample:\n  $ proxywarden ${example}`);
    return added.action(async () => {
      const wished = { ...context, env: withColourWish(context.env, wish()) };
      finish(await command(added.args, added.opts() as Options, wished));
    });
  };
  const add = <Options>(name: string, description: string, command: Plain<Options>, example: string) =>
    addWith<Options>(name, description, (_args, options, given) => command(options, given), example);

  addDaemonCommands(add);
  addForecastCommands(add);
  add("healthcheck", "check that the daemon answers; for use as a container health check", healthcheck, "healthcheck")
    .option("--config <file>", "check the daemon of this configuration at its listen address instead of --url")
    .option(...urlOption, daemonUrl, DEFAULT_URL)
    .option(...httpConfigOption);
  addWith<ExplainOptions>(
    "explain <node>",
    "explain why a node was or was not acted on: policies, hold reasons and actions",
    ([node], options, given) => explain(node!, options, given),
    "explain node_42 --config /etc/proxywarden/proxywarden.yaml --at 2h",
  )
    .option("--config <file>", "read the journal of this configuration instead of asking the daemon")
    .option("--at <time>", "explain the state at this time, such as 2026-11-21T03:12:00Z, or this long ago, such as 2h", moment)
    .option(...urlOption, daemonUrl, DEFAULT_URL)
    .option(...httpConfigOption)
    .option(...outputOption, output, "text");
  withDaemon(
    add("approvals", "list the actions waiting for approval, with their evidence", approvals, "approvals"),
  );
  addOrderCommands(addWith);
  const policy = withManners(program.command("policy").description("work with policies"), context, wish)
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

type Add = <Options>(name: string, description: string, command: Plain<Options>, example: string) => Command;

type AddWith = <Options>(
  usage: string,
  description: string,
  command: Run<Options>,
  example: string,
  parent?: Command,
) => Command;

/** The daemon itself, and what stands in for its surroundings. */
function addDaemonCommands(add: Add): void {
  add(
    "run",
    "run the daemon; SIGHUP reloads the configuration, SIGTERM stops it",
    run,
    "run --config proxywarden.yaml",
  ).requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG);
  add(
    "demo",
    "run a simulated service and the daemon in one process, and print what happens",
    demo,
    "demo --nodes 2000 --speed 10 --for 5m",
  )
    .option("--nodes <count>", "number of simulated nodes", whole(0, 200_000), 500)
    .option("--sessions <count>", "number of simulated sessions", whole(0, 2_000_000), 5_000)
    .option("--seed <number>", "seed of the simulation", whole(0, 4_294_967_295), 1)
    .option("--speed <factor>", "simulation speed, as a multiple of real time", speed, 1)
    .option("--port <port>", "port the daemon listens on; 0 picks a free port", whole(0, 65_535), 9713)
    .option("--for <duration>", "stop after this long, such as 5m", duration);
  add(
    "simulate",
    "run only the simulated service, for any client",
    simulate,
    "simulate --scenario config/scenarios/rough-day.yaml --port 9714",
  )
    .option("--scenario <file>", "scenario file: the network, the service's behavior and the faults")
    .option("--nodes <count>", "number of nodes; overrides the scenario", whole(0, 1_000_000))
    .option("--sessions <count>", "number of sessions; overrides the scenario", whole(0, 10_000_000))
    .option("--seed <number>", "seed; overrides the scenario", whole(0, 4_294_967_295))
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <port>", "port to listen on; 0 picks a free port", whole(0, 65_535), 9714);
  add(
    "check",
    "check a configuration: list every error with its line and column",
    check,
    "check --config proxywarden.yaml --output json",
  )
    .requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG)
    .option(
      "--nodes <count>",
      "fleet size to show the limits for; default: the size last seen by the daemon",
      whole(1, 10_000_000),
    )
    .option(...outputOption, output, "text");
}

/** Commands that show what a configuration would do. */
function addForecastCommands(add: Add): void {
  add(
    "plan",
    "show how often each collector polls, how old its data gets, and which limit slows it down",
    plan,
    "plan --config /etc/proxywarden/proxywarden.yaml --nodes 5000 --sessions 50000",
  )
    .requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG)
    .option("--nodes <count>", "number of nodes; default: as last seen by the daemon, or as the service reports", whole(0, 10_000_000))
    .option("--sessions <count>", "number of sessions; same default", whole(0, 1_000_000_000))
    .option(...outputOption, output, "text");
}

/** Operator commands for the running daemon. */
function addOrderCommands(addWith: AddWith): void {
  for (const order of orderCommands) {
    const added = addWith<OrderOptions>(
      order.row.about === null ? order.row.name : `${order.row.name} <${order.row.about}>`,
      order.description,
      ([id], options, given) => giveOrder(order.row, id, options, given),
      exampleOf(order),
    );
    if (order.row.hasReason) added.option("--reason <text>", "reason to record in the journal");
    withDaemon(added);
  }
}

/** What judges policies by themselves. */
function addPolicyCommands(addWith: AddWith, policy: Command): void {
  addWith<TestOptions>(
    "test <files...>",
    "run policy unit tests: fleet states in, expected verdicts and actions out",
    test,
    "test config/policies/tests/offline.yaml",
  ).option(...outputOption, output, "text");
  addWith<PolicyDiffOptions>(
    "diff <old> <new>",
    "compare two policy files: which nodes are newly acted on, and which no longer",
    policyDiff,
    "policy diff before.yaml config/policies/offline.yaml",
    policy,
  ).option(...outputOption, output, "text");
}

/** What makes the rest easy to type and to look up. */
function addShellCommands(addWith: AddWith, program: Command): void {
  const completing = addWith<object>(
    "completion <shell>",
    "print a shell completion script",
    async ([shell], _options, given) => completion(shell as Shell, program, given),
    "completion bash > ~/.local/share/bash-completion/completions/proxywarden",
  );
  completing.registeredArguments[0]!.choices(SHELLS);
  addWith<object>(
    "help [command...]",
    "show the help of a command",
    async (names) => {
      printHelp(program, names);
      return EXIT_FINE;
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
const withDaemon = (command: Command): Command =>
  command
    .option(...urlOption, daemonUrl, DEFAULT_URL)
    .option(...httpConfigOption)
    .option("--token-file <file>", `file of your operator token; else ${TOKEN_VARIABLE} is taken`)
    .option(...outputOption, output, "text");

const exampleOf = ({ row, example }: OrderCommand): string =>
  [row.name, example, "--token-file /run/secrets/alice"].filter((part) => part !== "").join(" ");
