import { CONFIG, type CommandRow, OUTPUT, onDemand, option, parseStep, serverUrl } from "../arguments/options.ts";
import { parseTime } from "../arguments/past-time.ts";

/** The commands of `policy`. */
export const POLICY_COMMANDS: readonly CommandRow[] = [
  {
    usage: "test <files...>",
    description: "run unit tests of policies; - is standard input",
    example: "policy test config/policies/tests/offline.yaml",
    options: [OUTPUT],
    run: onDemand(async () => (await import("./policy-test.ts")).runPolicyTests),
  },
  {
    usage: "diff <old> <new>",
    description:
      "compare the policies of two files or configurations: which changes make them act on more nodes, and which on fewer; - is standard input",
    example: "policy diff before.yaml config/policies/offline.yaml",
    options: [OUTPUT],
    run: onDemand(async () => (await import("./policy-diff.ts")).runPolicyDiff),
  },
  {
    usage: "backtest",
    description:
      "replay the history in Prometheus: show which actions policies would have taken, and what would have held them",
    example: "policy backtest --config proxywarden.yaml --since 30d --policies offline.yaml",
    options: [
      CONFIG,
      option(
        "--prometheus <url>",
        "URL of Prometheus; default: prometheus.url of the configuration",
        serverUrl("http://127.0.0.1:9090"),
      ),
      option("--http-config-file <file>", "HTTP client config file for --prometheus, in Prometheus format"),
      option("--since <time>", "start of the history, or how long ago; default: 30d before --until", parseTime),
      option("--until <time>", "end of the history, or how long ago; default: now", parseTime),
      option(
        "--step <duration>",
        "time between two points; default: the interval at which the node list was read, rounded up to 1m, 2m, 5m and so on; longer for large histories",
        parseStep,
      ),
      option(
        "--policies <files...>",
        "policies to compare with those of the configuration, which they replace or extend; - is standard input",
      ),
      option(
        "--matchers <matchers>",
        "label matchers that select the daemon's series, such as 'job=\"proxywarden\"'",
      ).default("", "none"),
      OUTPUT,
    ],
    run: onDemand(async () => (await import("./policy-backtest.ts")).runPolicyBacktest),
  },
];
