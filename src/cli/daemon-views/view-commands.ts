import type { Option } from "commander";
import { NODE_STATUSES } from "../../model/node.ts";
import { ROWS_MAX } from "../../web/api/query.ts";
import { type CommandRow, OPERATOR, option, parseSearchText, wholeNumber } from "../arguments/options.ts";
import { parsePastTime } from "../arguments/past-time.ts";
import { runActions, runDecisions, runOrders } from "./journal-rows.ts";
import { type NodesOptions, runHeldNodes, runNodes } from "./nodes.ts";
import { runStatus } from "./status.ts";

const NODES_MAX = 1_000_000;
/** Default number of rows, which fit on a screen. */
const ROWS_DEFAULT = 20;
const NODES_DEFAULT = 100;

const WATCH: readonly Option[] = [
  option("--watch", "refresh every 2 s, and print the result again when it has changed"),
  ...OPERATOR,
];

const LOCATION: readonly Option[] = [
  option("--region <region>", "only nodes in this region", parseSearchText),
  option("--country <code>", "only nodes in this country, such as DE", parseSearchText),
];

const NODE = option("--node <node>", "only this node, by its id or name", parseSearchText);

const LATEST_ROWS: readonly Option[] = [
  option(
    "--since <time>",
    "only since this time, such as 2026-11-21T03:12:00Z, or this long ago, such as 2h",
    parsePastTime,
  ),
  option("--limit <count>", "maximum number of rows", wholeNumber(1, ROWS_MAX), ROWS_DEFAULT),
  ...WATCH,
];

const JOURNAL_ROWS: readonly Option[] = [
  NODE,
  option("--policy <name>", "only this policy", parseSearchText),
  ...LOCATION,
  ...LATEST_ROWS,
];

/** The commands that show what the running daemon knows. */
export const VIEW_COMMANDS: readonly CommandRow[] = [
  {
    usage: "status",
    description: "show the state of the daemon: nodes, collectors, limits, policies, and what holds actions",
    example: "status --watch",
    options: WATCH,
    run: runStatus,
  },
  {
    usage: "nodes",
    description: "list the nodes that the daemon knows",
    example: "nodes --status offline --region eu-west",
    options: [
      option("--status <status>", "only nodes with this status").choices(NODE_STATUSES).conflicts("held"),
      option(
        "--held",
        "only held nodes, with the reasons and how each ends; those that a policy would treat come first",
      ),
      ...LOCATION,
      option("--search <text>", "only nodes with this text in their id, name or IP address", parseSearchText),
      option("--limit <count>", "maximum number of nodes", wholeNumber(1, NODES_MAX), NODES_DEFAULT),
      ...WATCH,
    ],
    run: (options: NodesOptions & { readonly held?: boolean }, context) =>
      options.held === true ? runHeldNodes(options, context) : runNodes(options, context),
  },
  {
    usage: "decisions",
    description: "list the latest decisions to act on a node or to hold it, newest first",
    example: "decisions --policy reboot-offline --since 2h",
    options: JOURNAL_ROWS,
    run: runDecisions,
  },
  {
    usage: "actions",
    description: "list the latest actions and their outcomes, newest first",
    example: "actions --region eu-west --since 1d",
    options: JOURNAL_ROWS,
    run: runActions,
  },
  {
    usage: "orders",
    description: "list the latest operator commands and reloads, and who issued them, newest first",
    example: "orders --since 1d",
    options: [NODE, ...LATEST_ROWS],
    run: runOrders,
  },
];
