import { DAEMON_FAMILIES } from "../../src/metrics/families/daemon-families.ts";
import type { DaemonFamily } from "../../src/metrics/families/family.ts";
import { NETWORK_FAMILIES } from "../../src/metrics/families/network-families.ts";
import { NODE_INFO } from "../../src/metrics/families/node-families.ts";
import { unitOf } from "../../src/metrics/text-format.ts";
import {
  CAPPED_FAMILIES,
  ENDPOINT_LABELS,
  EPISODE_STATES,
  FAILURE_MEANINGS,
  INVENTORY_STATES,
  LABEL_CAPS,
  NOTIFICATION_OUTCOMES,
  REJECT_MEANINGS,
  WEB_REFUSAL_MEANINGS,
} from "../../src/model/label-values.ts";
import { NODE_STATUSES } from "../../src/model/node.ts";
import { ACTION_KINDS, MODES } from "../../src/model/policy/policy.ts";
import { ACTION_OUTCOMES } from "../../src/model/remediation/episode.ts";
import { OPERATOR_COMMANDS } from "../../src/model/remediation/operator-command.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../src/model/session.ts";
import { COLLECTORS } from "../../src/model/snapshot.ts";
import { HOLD_REASON_ROWS, HOLD_REASONS } from "../../src/policy/decision.ts";
import { LIMIT_SCOPES } from "../../src/rate-limit/external-usage/external-usage.ts";
import { PLAN_BOUNDS } from "../../src/scheduling/polling-capacity.ts";

const INTRO = `# Metrics

<!-- Written by \`npm run docs\` from the tables in src/metrics/. -->

\`GET /metrics\` is served from memory, in the Prometheus text format 0.0.4 or in OpenMetrics 1.0 depending on \`Accept\`, and
compressed with gzip depending on \`Accept-Encoding\`. A scrape makes no API calls, so any number of Prometheus servers can scrape the daemon.
`;

const NETWORK_INTRO = `These metrics describe the network, as of the last snapshot.

- A gauge disappears when its data is older than \`proxywarden_plan_fresh_seconds\` of its collector. This limit is at most a day (sessions:
  3 days, details: 14 days) or three requested intervals, whichever is longer. Once the month's calls are used up, the last planned interval
  still applies.
- Counters do not become stale. All series of a node disappear once the node is gone; those of its sessions return if a later walk of the
  sessions still shows some.
- Times are on the service's clock, except \`proxynet_node_detail_timestamp_seconds\`, which is on the daemon's.
- \`export.deny\` excludes families. If there are more than \`export.series_max\` series, whole families are dropped, those with the most
  series first.
`;

const DAEMON_INTRO = `These metrics describe the daemon at the time of the scrape. \`/metrics\` also has the \`process_*\` and \`nodejs_*\` metrics of the
Node.js process, which are not listed here. A counter or histogram whose label values are all known in advance starts at zero; a gauge is
absent until its value is known. The only family with series for individual nodes is \`proxywarden_node_episode\`, which has one
series per open episode, at most 1,000.
`;

const CAPS_INTRO = `Records with values beyond the cap are counted under \`other\`, and in \`proxywarden_labels_folded_total\`. A value
that has its own series keeps it while it is listed. Families with one series per node are bounded by the size of the fleet and by
\`export.series_max\`.
`;

/** Returns the text of docs/metrics.md: every family, from the tables that the daemon renders. */
export const metricsReference = (): string =>
  [
    INTRO,
    "## The network: `proxynet_*`\n",
    NETWORK_INTRO,
    table(["family", "type", "unit", "labels", "collector", "meaning"], NETWORK_FAMILIES.map(networkRow)),
    "## The daemon: `proxywarden_*`\n",
    DAEMON_INTRO,
    table(
      ["family", "type", "unit", "labels", "meaning"],
      Object.entries<DaemonFamily>(DAEMON_FAMILIES).map(daemonRow),
    ),
    "## Label values\n",
    table(["label", "values"], CLOSED_LABELS),
    ...reasonSection("proxywarden_collect_failures_total", FAILURE_MEANINGS),
    ...reasonSection("proxywarden_records_rejected_total", REJECT_MEANINGS),
    "### `reason` of `proxywarden_decisions_total` and `proxywarden_held_nodes`\n",
    DECISION_INTRO,
    ...reasonSection("proxywarden_web_refusals_total", WEB_REFUSAL_MEANINGS),
    "## Caps on label values from the service\n",
    CAPS_INTRO,
    table(
      ["maximum", "of", "family"],
      Object.entries(LABEL_CAPS).map(([family, { values, of }]) => [values.toLocaleString("en"), of, code(family)]),
    ),
    "## Example queries\n",
    ...QUERY_EXAMPLES.map(([title, query]) => `${title}:\n\n\`\`\`promql\n${query}\n\`\`\`\n`),
  ].join("\n");

type Cells = readonly string[];

const code = (text: string) => `\`${text}\``;
const codeList = (names: readonly string[]) => (names.length === 0 ? "–" : names.map(code).join(", "));
const table = (head: Cells, rows: readonly Cells[]) =>
  `${[head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n`;

const networkRow = (family: (typeof NETWORK_FAMILIES)[number]): Cells => [
  code(family.name),
  family.type,
  unitOf(family.name) ?? "–",
  family === NODE_INFO ? `${codeList(family.labels)} and those of \`export.node_labels\`` : codeList(family.labels),
  code(family.source),
  family.help,
];

const daemonRow = ([name, { type, labels, help }]: readonly [string, DaemonFamily]): Cells => [
  code(name),
  type,
  unitOf(name) ?? "–",
  codeList(Object.keys(labels)),
  help,
];

const reasonSection = (family: string, meanings: Readonly<Record<string, string>>): readonly string[] => [
  `### \`reason\` of \`${family}\`\n`,
  table(
    ["reason", "meaning"],
    Object.entries(meanings).map(([reason, meaning]) => [code(reason), meaning]),
  ),
];

const DECISION_INTRO = `[remediation.md](remediation.md#what-holds-a-node) explains the reasons to hold a node: ${codeList(HOLD_REASONS)}.
For a decision to act, \`verdict\` is \`act\` and \`reason\` is \`all_clear\`.
`;

const CLOSED_LABELS: readonly Cells[] = [
  ["`collector`", codeList(COLLECTORS)],
  ["`endpoint`", codeList(ENDPOINT_LABELS)],
  ["`category`", codeList(LIMIT_SCOPES)],
  [
    "`code`",
    "the status code of the response; without a complete response, the failure reason (see below) or `aborted`",
  ],
  ["`status` of nodes", codeList(NODE_STATUSES)],
  ["`status` of sessions", codeList(SESSION_STATUSES)],
  ["`session_type`", codeList(SESSION_TYPES)],
  ["`family`", codeList(CAPPED_FAMILIES)],
  ["`verdict`", "`act`, `hold`"],
  ["`action`", codeList(ACTION_KINDS)],
  ["`outcome` of actions ([meanings](remediation.md#outcomes-of-an-action))", codeList(ACTION_OUTCOMES)],
  ["`state` of episodes ([meanings](remediation.md#episodes))", codeList(EPISODE_STATES)],
  ["`state` of `proxywarden_inventory_nodes`", codeList(INVENTORY_STATES)],
  ["`action` of `proxywarden_node_episode`", "as above, or `none`"],
  ["`mode`", codeList(MODES)],
  ["`command`", codeList(OPERATOR_COMMANDS)],
  ["`source` of operator commands", "`operator`, or `expiry` if a pause or hold expired"],
  [
    "`limit` of `proxywarden_limit_nodes`",
    "the key of the limit in `safety`, such as `max_disrupted` or `max_disrupted_per.region`",
  ],
  ["`limit` of `proxywarden_plan_bound`", codeList(PLAN_BOUNDS)],
  ["`age`", "`median`, `worst`"],
  ["`outcome` of notifications", codeList(NOTIFICATION_OUTCOMES)],
];

const QUERY_EXAMPLES: readonly (readonly [title: string, query: string])[] = [
  [
    "Share of nodes online, by region",
    'sum by (region) (proxynet_nodes{status="online"}) / sum by (region) (proxynet_nodes)',
  ],
  [
    "The ten nodes with the highest CPU usage, with their names",
    "topk(10, proxynet_node_cpu_usage_ratio) * on (instance, node_id) group_left (name, region) proxynet_node_info",
  ],
  ["Nodes that the service has not seen for ten minutes", "time() - proxynet_node_last_seen_timestamp_seconds > 600"],
  [
    "Bytes sent per second by region, if sessions are walked at least every 5 minutes ([rules for slower walks](monitoring.md#traffic))",
    `sum by (region) (
  increase(proxynet_session_sent_bytes_total[10m]) * on (instance, node_id) group_left (region) proxynet_node_info
) / scalar(delta(proxywarden_collect_last_success_timestamp_seconds{collector="sessions"}[10m]))`,
  ],
  [
    "95th percentile of the session duration, by type",
    "histogram_quantile(0.95, sum by (session_type, le) (rate(proxynet_session_duration_seconds_bucket[1h])))",
  ],
  [
    "Collectors with stale data",
    `time() - proxywarden_collect_last_success_timestamp_seconds
  > on (instance, collector) proxywarden_plan_fresh_seconds`,
  ],
  ["Responses with status 429 in the last hour", "increase(proxywarden_ratelimit_exceeded_total[1h]) > 0"],
  [
    "Reasons for holds, most frequent first",
    'sort_desc(sum by (reason) (increase(proxywarden_decisions_total{verdict="hold"}[1h])))',
  ],
  [
    "Share of actions in the last week that were verified, by policy",
    `sum by (policy) (increase(proxywarden_actions_total{outcome="verified"}[7d]))
  / sum by (policy) (increase(proxywarden_actions_total{outcome=~"verified|ineffective|refused"}[7d]))`,
  ],
  [
    "Nodes with an action in progress, with the action and the node's name",
    `proxywarden_node_episode{state="acting"}
  * on (instance, node_id) group_left (name, region) proxynet_node_info`,
  ],
  [
    "Days until the web server's certificate expires",
    "(proxywarden_web_certificate_expiration_timestamp_seconds - time()) / 86400",
  ],
  ["Nodes that policies have given up on", 'sum by (policy) (proxywarden_episodes{state="given_up"}) > 0'],
  ["Used share of the month's calls", "proxywarden_month_calls / proxywarden_month_calls_limit"],
];

const HOLDS_BEGIN = "<!-- holds: written by npm run docs -->\n";
const HOLDS_END = "<!-- end of holds -->";

/** Returns a document with the table of all holds between its two marks. Throws if the marks are missing. */
export function insertHoldTable(text: string): string {
  const [begin, end] = [text.indexOf(HOLDS_BEGIN) + HOLDS_BEGIN.length, text.indexOf(HOLDS_END)];
  if (begin < HOLDS_BEGIN.length || end < begin) throw new Error("the document has no marks for the table of holds");
  const rows = HOLD_REASONS.map((reason) => {
    const { counts, condition, ends, operatorAction = "–", alert } = HOLD_REASON_ROWS[reason];
    return [code(reason), counts, condition, ends, operatorAction, alert == null ? "–" : code(alert)];
  });
  const head = [
    "reason",
    "what it checks",
    "when it holds",
    "how it ends",
    "what to do",
    "alert if it lasts (within 6 h)",
  ];
  return `${text.slice(0, begin)}\n${table(head, rows)}\n${text.slice(end)}`;
}
