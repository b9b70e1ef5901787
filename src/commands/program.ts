import { Command } from "commander";
import { approvals } from "./approvals.ts";
import { check } from "./check.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { TOKEN_VARIABLE } from "./daemon.ts";
import { demo } from "./demo.ts";
import { type ExplainOptions, explain } from "./explain.ts";
import { healthcheck } from "./healthcheck.ts";
import { DEFAULT_CONFIG, DEFAULT_URL, daemonUrl, duration, moment, output, speed, whole } from "./options.ts";
import { giveOrder, type OrderCommand, type OrderOptions, orderCommands } from "./orders.ts";
import { plan } from "./plan.ts";
import { run } from "./run.ts";
import { simulate } from "./simulate.ts";

/** What runs a command: its argument, where it takes one, and its options. */
type Run<Options> = (argument: string | undefined, options: Options, context: CommandContext) => Promise<ExitCode>;

/** What the command line offers. `finish` is told how the chosen command ended. */
export function createProgram(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const program = new Command("proxywarden")
    .description("Watches a network of proxy nodes through its management API, exports it to Prometheus, and heals it.")
    .version(context.version)
    .option("--debug", "show stack traces")
    .configureOutput({ writeOut: (text) => context.out.write(text), writeErr: (text) => context.err.write(text) })
    .exitOverride();
  const addWith = <Options>(usage: string, description: string, command: Run<Options>, example = "") => {
    const added = program.command(usage).description(description).exitOverride();
    if (example !== "") added.addHelpText("after", `\nExample:\n  $ proxywarden ${example}`);
    return added.action(async () => finish(await command(added.args[0], added.opts() as Options, context)));
  };
  const add = <Options>(
    name: string,
    description: string,
    command: (options: Options, context: CommandContext) => Promise<ExitCode>,
    example?: string,
  ) => addWith<Options>(name, description, (_argument, options, given) => command(options, given), example);

  addDaemonCommands(add);
  addForecastCommands(add);
  add("healthcheck", "whether the daemon answers: the container's health check", healthcheck).option(
    ...urlOption,
    daemonUrl,
    DEFAULT_URL,
  );
  addWith<ExplainOptions>(
    "explain <node>",
    "why a node was, or was not, acted on: every policy, every reason, every action",
    (node, options, given) => explain(node!, options, given),
    "explain node_42 --config /etc/proxywarden/proxywarden.yaml --at 2h",
  )
    .option("--config <file>", "read the journal of this configuration, rather than ask the daemon")
    .option("--at <time>", "as it was then: a time such as 2026-11-21T03:12:00Z, or how long ago, such as 2h", moment)
    .option(...urlOption, daemonUrl, DEFAULT_URL)
    .option(...outputOption, output, "text");
  withDaemon(
    add("approvals", "the actions that wait for a person, and what each was decided on", approvals, "approvals"),
  );
  for (const order of orderCommands) {
    const added = addWith<OrderOptions>(
      order.row.about === null ? order.row.name : `${order.row.name} <${order.row.about}>`,
      order.description,
      (id, options, given) => giveOrder(order.row, id, options, given),
      exampleOf(order),
    );
    if (order.row.hasReason) added.option("--reason <text>", "why, for whoever looks later");
    withDaemon(added);
  }
  return program;
}

type Add = <Options>(
  name: string,
  description: string,
  command: (options: Options, context: CommandContext) => Promise<ExitCode>,
  example?: string,
) => Command;

/** The daemon itself, and what stands in for its surroundings. */
function addDaemonCommands(add: Add): void {
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

const urlOption = ["--url <url>", "where the daemon is"] as const;
const outputOption = ["--output <format>", "text or json"] as const;

/** The options by which a command reaches the running daemon. */
const withDaemon = (command: Command): Command =>
  command
    .option(...urlOption, daemonUrl, DEFAULT_URL)
    .option("--token-file <file>", `file of the admin token; else ${TOKEN_VARIABLE} is taken`)
    .option(...outputOption, output, "text");

const exampleOf = ({ row, example }: OrderCommand): string =>
  [row.name, example, "--token-file /run/secrets/admin"].filter((part) => part !== "").join(" ");
