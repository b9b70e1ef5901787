import { Command } from "commander";
import { approvals } from "./approvals.ts";
import { check } from "./check.ts";
import { type ColourWish, withColourWish } from "./colour.ts";
import { completion, SHELLS, type Shell } from "./completion.ts";
import { type CommandContext, EXIT_FINE, type ExitCode } from "./context.ts";
import { TOKEN_VARIABLE } from "./daemon.ts";
import { demo } from "./demo.ts";
import { type ExplainOptions, explain } from "./explain.ts";
import { healthcheck } from "./healthcheck.ts";
import { DEFAULT_CONFIG, DEFAULT_URL, daemonUrl, duration, moment, output, speed, whole } from "./options.ts";
import { giveOrder, type OrderCommand, type OrderOptions, orderCommands } from "./orders.ts";
import { plan } from "./plan.ts";
import { type PolicyDiffOptions, policyDiff } from "./policydiff.ts";
import { run } from "./run.ts";
import { simulate } from "./simulate.ts";
import { type TestOptions, test } from "./test.ts";
import { printHelp, withManners } from "./usage.ts";

/** What runs a command: its arguments, as many as it takes, and its options. */
type Run<Options> = (args: readonly string[], options: Options, context: CommandContext) => Promise<ExitCode>;

/** What runs a command without an argument. */
type Plain<Options> = (options: Options, context: CommandContext) => Promise<ExitCode>;

/** What the command line offers. `finish` is told how the chosen command ended. */
export function createProgram(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const program = new Command("proxywarden")
    .description("Watches a network of proxy nodes through its management API, exports it to Prometheus, and heals it.")
    .version(context.version)
    .option("--debug", "show stack traces")
    .option("--color", "colours, wherever the output goes")
    .option("--no-color", "no colours; else a terminal gets them, as NO_COLOR and FORCE_COLOR say")
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
  add("healthcheck", "whether the daemon answers: the container's health check", healthcheck, "healthcheck")
    .option("--config <file>", "the daemon of this configuration, wherever it listens, rather than of --url")
    .option(...urlOption, daemonUrl, DEFAULT_URL)
    .option(...httpConfigOption);
  addWith<ExplainOptions>(
    "explain <node>",
    "why a node was, or was not, acted on: every policy, every reason, every action",
    ([node], options, given) => explain(node!, options, given),
    "explain node_42 --config /etc/proxywarden/proxywarden.yaml --at 2h",
  )
    .option("--config <file>", "read the journal of this configuration, rather than ask the daemon")
    .option("--at <time>", "as it was then: a time such as 2026-11-21T03:12:00Z, or how long ago, such as 2h", moment)
    .option(...urlOption, daemonUrl, DEFAULT_URL)
    .option(...httpConfigOption)
    .option(...outputOption, output, "text");
  withDaemon(
    add("approvals", "the actions that wait for a person, and what each was decided on", approvals, "approvals"),
  );
  addOrderCommands(addWith);
  const policy = withManners(program.command("policy").description("what policies come to"), context, wish)
    .helpCommand(false)
    .addHelpText("after", "\nExample:\n  $ proxywarden policy diff before.yaml after.yaml");
  addPolicyCommands(addWith, policy);
  addShellCommands(addWith, program);
  return program;
}

const PROGRAM_EXAMPLES = `
Examples:
  $ proxywarden demo                                 see it work, on a simulated network
  $ proxywarden check --config proxywarden.yaml      every error of a configuration at once
  $ proxywarden run --config proxywarden.yaml        the daemon
  $ proxywarden explain node_42                      why that node was rebooted, or was not

0: fine; 1: what was asked about is bad; 2: wrong usage. COMMAND --help says more.`;

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
    "the daemon; SIGHUP reloads the configuration, SIGTERM stops it",
    run,
    "run --config proxywarden.yaml",
  ).requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG);
  add(
    "demo",
    "a simulated service and the daemon in one process, telling what happens",
    demo,
    "demo --nodes 2000 --speed 10 --for 5m",
  )
    .option("--nodes <count>", "nodes of the simulated network", whole(0, 200_000), 500)
    .option("--sessions <count>", "sessions of the simulated network", whole(0, 2_000_000), 5_000)
    .option("--seed <number>", "everything simulated follows from it", whole(0, 4_294_967_295), 1)
    .option("--speed <factor>", "how much faster than real its time runs", speed, 1)
    .option("--port <port>", "where the daemon listens; 0: any free port", whole(0, 65_535), 9713)
    .option("--for <duration>", "end by itself after this, such as 5m", duration);
  add(
    "simulate",
    "the simulated service alone, for any client",
    simulate,
    "simulate --scenario config/scenarios/rough-day.yaml --port 9714",
  )
    .option("--scenario <file>", "the network, the service's choices and the faults")
    .option("--nodes <count>", "nodes, over the scenario's", whole(0, 1_000_000))
    .option("--sessions <count>", "sessions, over the scenario's", whole(0, 10_000_000))
    .option("--seed <number>", "seed, over the scenario's", whole(0, 4_294_967_295))
    .option("--host <address>", "where it listens", "127.0.0.1")
    .option("--port <port>", "where it listens; 0: any free port", whole(0, 65_535), 9714);
  add(
    "check",
    "whether a configuration is valid: every error, with its line and column",
    check,
    "check --config proxywarden.yaml --output json",
  )
    .requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG)
    .option(
      "--nodes <count>",
      "size of the fleet that limits are shown for; else as the daemon saw last",
      whole(1, 10_000_000),
    )
    .option(...outputOption, output, "text");
}

/** Looks ahead: what a configuration would do. */
function addForecastCommands(add: Add): void {
  add(
    "plan",
    "what will be polled how often, how old the data will be, what the limits stretch, and which limit it is",
    plan,
    "plan --config /etc/proxywarden/proxywarden.yaml --nodes 5000 --sessions 50000",
  )
    .requiredOption("--config <file>", "the configuration", DEFAULT_CONFIG)
    .option("--nodes <count>", "nodes; else as many as the daemon saw last, or the service says", whole(0, 10_000_000))
    .option("--sessions <count>", "sessions, likewise", whole(0, 1_000_000_000))
    .option(...outputOption, output, "text");
}

/** What a person tells the running daemon. */
function addOrderCommands(addWith: AddWith): void {
  for (const order of orderCommands) {
    const added = addWith<OrderOptions>(
      order.row.about === null ? order.row.name : `${order.row.name} <${order.row.about}>`,
      order.description,
      ([id], options, given) => giveOrder(order.row, id, options, given),
      exampleOf(order),
    );
    if (order.row.hasReason) added.option("--reason <text>", "why, for whoever looks later");
    withDaemon(added);
  }
}

/** What judges policies by themselves. */
function addPolicyCommands(addWith: AddWith, policy: Command): void {
  addWith<TestOptions>(
    "test <files...>",
    "tests of policies: a fleet over time in, verdicts and actions out",
    test,
    "test config/policies/tests/offline.yaml",
  ).option(...outputOption, output, "text");
  addWith<PolicyDiffOptions>(
    "diff <old> <new>",
    "what the policies of one file could newly touch beside those of another, and what they no longer do",
    policyDiff,
    "policy diff before.yaml config/policies/offline.yaml",
    policy,
  ).option(...outputOption, output, "text");
}

/** What makes the rest easy to type and to look up. */
function addShellCommands(addWith: AddWith, program: Command): void {
  const completing = addWith<object>(
    "completion <shell>",
    "a script that completes commands, options and files in your shell",
    async ([shell], _options, given) => completion(shell as Shell, program, given),
    "completion bash > ~/.local/share/bash-completion/completions/proxywarden",
  );
  completing.registeredArguments[0]!.choices(SHELLS);
  addWith<object>(
    "help [command...]",
    "what a command does, and its options",
    async (names) => {
      printHelp(program, names);
      return EXIT_FINE;
    },
    "help explain",
  );
}

const urlOption = ["--url <url>", "where the daemon is"] as const;
const httpConfigOption = [
  "--http-config-file <file>",
  "tls_config, basic_auth and authorization for it, as Prometheus writes them",
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
