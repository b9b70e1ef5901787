import { CAPPED_FAMILIES, LABEL_CAPS } from "../model/label-caps.ts";
import { NODE_STATUSES } from "../model/node.ts";
import { ACTION_KINDS, MODES } from "../model/policy/policy.ts";
import { HOLD_REASONS } from "../model/remediation/decision.ts";
import { ACTION_OUTCOMES } from "../model/remediation/episode.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../model/session.ts";
import { COLLECTORS } from "../model/snapshot.ts";
import { HOLD_REASON_ROWS } from "../policy/guards/all-guards.ts";
import type { HoldReasonRow } from "../policy/guards/guard.ts";
import { DAEMON_FAMILIES, type DaemonFamily } from "./families/daemon-families.ts";
import { NETWORK_FAMILIES } from "./families/network-families.ts";
import { NODE_INFO } from "./families/node-families.ts";
import {
  CATEGORY_LABELS,
  ENDPOINT_LABELS,
  EPISODE_STATES,
  FAILURE_MEANINGS,
  FAILURE_REASONS,
  INVENTORY_STATES,
  NOTIFICATION_OUTCOMES,
  PLAN_LIMITS,
  REJECT_MEANINGS,
  REJECT_REASONS,
  WEB_REFUSAL_MEANINGS,
  WEB_REFUSALS,
} from "./label-values.ts";
import { unitOf } from "./text-format.ts";

/** The text of docs/metrics.md: every family, from the tables that are rendered. */
export const metricsReference = (): string =>
  [
    INTRO,
    "## The network: `proxynet_*`\n",
    NETWORK_INTRO,
    table(["family", "type", "unit", "labels", "from", "meaning"], NETWORK_FAMILIES.map(networkRow)),
    "## The daemon: `proxywarden_*`\n",
    DAEMON_INTRO,
    table(
      ["family", "type", "unit", "labels", "meaning"],
      Object.entries<DaemonFamily>(DAEMON_FAMILIES).map(daemonRow),
    ),
    "## Label values\n",
    table(["label", "values"], CLOSED_LABELS),
    "### `reason` of `proxywarden_collect_failures_total`\n",
    table(
      ["reason", "meaning"],
      FAILURE_REASONS.map((reason) => [code(reason), FAILURE_MEANINGS[reason]]),
    ),
    "### `reason` of `proxywarden_records_rejected_total`\n",
    table(
      ["reason", "meaning"],
      REJECT_REASONS.map((reason) => [code(reason), REJECT_MEANINGS[reason]]),
    ),
    "### `reason` of `proxywarden_decisions_total`\n",
    table(
      ["reason", "when", "how it ends"],
      [
        ...HOLD_REASONS.map((reason) => [
          code(reason),
          HOLD_REASON_ROWS[reason].condition,
          HOLD_REASON_ROWS[reason].ends,
        ]),
        [code("all_clear"), "nothing holds the node: it is acted on", "–"],
      ],
    ),
    "### `reason` of `proxywarden_web_refusals_total`\n",
    table(
      ["reason", "meaning"],
      WEB_REFUSALS.map((reason) => [code(reason), WEB_REFUSAL_MEANINGS[reason]]),
    ),
    "## Caps of labels that the service fills\n",
    CAPS_INTRO,
    table(
      ["values", "of", "family"],
      Object.entries(LABEL_CAPS).map(([family, { values, of }]) => [String(values), of, code(family)]),
    ),
    "## Questions and their PromQL\n",
    ...QUERY_EXAMPLES.map(([question, query]) => `${question}\n\n\`\`\`promql\n${query}\n\`\`\`\n`),
  ].join("\n");

const INTRO = `# Metrics

<!-- Written by \`npm run docs\` from the tables in src/metrics/. -->

\`GET /metrics\` answers from memory alone, in the Prometheus text format 0.0.4 or in OpenMetrics 1.0, by \`Accept\`, gzipped
by \`Accept-Encoding\`. No scrape costs the service a call, however many Prometheis scrape.
`;

const NETWORK_INTRO = `What the network looks like, rendered once for each snapshot. A gauge's sample leaves the page when what it says is older
than \`proxywarden_plan_fresh_seconds\` of the collector that it is from: three planned intervals, or three times as long as
a run takes where that is longer, and at most a day (sessions: 3 days, details: 14 days) unless the configuration itself asks
for rarer reads. While the month has no calls left, the last planned interval counts. A counter stays. A node that is gone takes its series
with it. Times are on the clock of the service, but for \`proxynet_node_detail_timestamp_seconds\`, which is on ours.
\`export.deny\` leaves families out; over \`export.series_max\` the widest ones are dropped whole.
`;

const DAEMON_INTRO = `What this daemon does, as it is at the scrape. Beside them stand \`process_*\` and \`nodejs_*\` of the process. A counter or
histogram whose label values are all known beforehand starts at zero; a gauge is absent until it is known. The one family
with a series a node is \`proxywarden_node_episode\`: only nodes with an open episode have one, a thousand at most.
`;

const CAPS_INTRO = `Beyond its cap a label's values are counted under \`other\`, and \`proxywarden_labels_folded_total\` counts the records. A
value that has its own series keeps it for as long as it is seen. Families with a series a node are bounded by the fleet,
and by \`export.series_max\`.
`;

type Cells = readonly string[];

const code = (text: string) => `\`${text}\``;
const listed = (names: readonly string[]) => (names.length === 0 ? "–" : names.map(code).join(", "));
const table = (head: Cells, rows: readonly Cells[]) =>
  `${[head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n`;

const networkRow = (family: (typeof NETWORK_FAMILIES)[number]): Cells => [
  code(family.name),
  family.type,
  unitOf(family.name) ?? "–",
  family === NODE_INFO ? `${listed(family.labels)} and those of \`export.node_labels\`` : listed(family.labels),
  code(family.source),
  family.help,
];

const daemonRow = ([name, { type, labels, help }]: readonly [string, DaemonFamily]): Cells => [
  code(name),
  type,
  unitOf(name) ?? "–",
  listed(Object.keys(labels)),
  help,
];

const CLOSED_LABELS: readonly Cells[] = [
  ["`collector`", listed(COLLECTORS)],
  ["`endpoint`", listed(ENDPOINT_LABELS)],
  ["`category`", listed(CATEGORY_LABELS)],
  ["`code`", "the status code of the answer; or, where none came, the reason, as below, or `aborted`"],
  ["`status` of nodes", listed(NODE_STATUSES)],
  ["`status` of sessions", listed(SESSION_STATUSES)],
  ["`session_type`", listed(SESSION_TYPES)],
  ["`family`", listed(CAPPED_FAMILIES)],
  ["`verdict`", "`act`, `hold`"],
  ["`action`", listed(ACTION_KINDS)],
  ["`outcome` of actions", listed(ACTION_OUTCOMES)],
  ["`state` of episodes", listed(EPISODE_STATES)],
  ["`state` of `proxywarden_inventory_nodes`", listed(INVENTORY_STATES)],
  ["`action` of an episode", "as above, or `none`"],
  ["`mode`", listed(MODES)],
  ["`limit`", "the limits by their keys in `safety`, such as `max_disrupted` or `max_disrupted_per.region`"],
  ["`limit` of the plan", listed(PLAN_LIMITS)],
  ["`age`", "`median`, `worst`"],
  ["`outcome` of notices", listed(NOTIFICATION_OUTCOMES)],
];

const QUERY_EXAMPLES: readonly (readonly [question: string, query: string])[] = [
  [
    "Share of nodes online, by region:",
    'sum by (region) (proxynet_nodes{status="online"}) / sum by (region) (proxynet_nodes)',
  ],
  [
    "The ten nodes with the busiest CPU, with their names:",
    "topk(10, proxynet_node_cpu_usage_ratio) * on (node_id) group_left (name, region) proxynet_node_info",
  ],
  ["Nodes that the service has not seen for ten minutes:", "time() - proxynet_node_last_seen_timestamp_seconds > 600"],
  [
    "Bytes a second through each region:",
    `sum by (region) (
  (rate(proxynet_session_sent_bytes_total[5m]) + rate(proxynet_session_received_bytes_total[5m]))
  * on (node_id) group_left (region) proxynet_node_info
)`,
  ],
  [
    "Duration that 95 % of the sessions stay under, by type:",
    "histogram_quantile(0.95, sum by (session_type, le) (rate(proxynet_session_duration_seconds_bucket[15m])))",
  ],
  [
    "A collector whose data are stale:",
    `time() - proxywarden_collect_last_success_timestamp_seconds
  > on (instance, collector) proxywarden_plan_fresh_seconds`,
  ],
  ["Refusals for exceeded limits, which should be none:", "increase(proxywarden_ratelimit_exceeded_total[1h]) > 0"],
  [
    "Why nodes are held, most often first:",
    'sort_desc(sum by (reason) (increase(proxywarden_decisions_total{verdict="hold"}[1h])))',
  ],
  [
    "Share of actions that were verified, by policy, over a week:",
    `sum by (policy) (increase(proxywarden_actions_total{outcome="verified"}[7d]))
  / sum by (policy) (increase(proxywarden_actions_total{outcome=~"verified|ineffective|refused"}[7d]))`,
  ],
  [
    "Nodes that an action is under way on, which one, and what they are called:",
    `proxywarden_node_episode{state="acting"}
  * on (instance, node_id) group_left (name, region) proxynet_node_info`,
  ],
  [
    "Days until the certificate of the web server ends:",
    "(proxywarden_web_certificate_expiration_timestamp_seconds - time()) / 86400",
  ],
  ["Nodes that were given up:", 'sum by (policy) (proxywarden_episodes{state="given_up"}) > 0'],
  ["Share of the month's calls that is used:", "proxywarden_month_calls / proxywarden_month_calls_limit"],
];

const HOLDS_BEGIN = "<!-- holds: written by npm run docs -->\n";
const HOLDS_END = "<!-- end of holds -->";

/** A document with the table of all holds between its two marks. Throws where it has no marks. */
export function insertHoldTable(text: string): string {
  const [begin, end] = [text.indexOf(HOLDS_BEGIN) + HOLDS_BEGIN.length, text.indexOf(HOLDS_END)];
  if (begin < HOLDS_BEGIN.length || end < begin) throw new Error("the document has no marks for the table of holds");
  const rows = HOLD_REASONS.map((reason) => {
    const {
      counts,
      condition: when,
      ends,
      operatorAction: todo = "–",
      alert,
    }: HoldReasonRow = HOLD_REASON_ROWS[reason];
    return [code(reason), counts, when, ends, todo, alert == null ? "–" : code(alert)];
  });
  const holds = table(
    ["reason", "what it counts", "when it holds", "how that ends", "what to do", "alert within 6 h"],
    rows,
  );
  return `${text.slice(0, begin)}\n${holds}\n${text.slice(end)}`;
}
