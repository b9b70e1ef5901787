import { MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { HeldNodeView, PolicyView, remediationStatusView } from "../../web/api/remediation-views.ts";
import type { budgetView, LeaderView, statusView } from "../../web/api/status-views.ts";
import {
  countNoun,
  episodeState,
  formatCount,
  formatDuration,
  NOT_POLLING,
  standsBy,
} from "../../web/ui/page/format.ts";
import { PROGRAM } from "../context.ts";
import { formatLength, formatTable, formatTime, type Paint, stripControlCharacters } from "../output/text.ts";
import { viewCommand } from "./daemon-view.ts";
import { formatHeldNodes, readHeldNodes } from "./nodes.ts";

type Status = ReturnType<typeof statusView> & {
  readonly remediation: ReturnType<typeof remediationStatusView>;
  readonly leader?: LeaderView;
};

type Budget = ReturnType<typeof budgetView>;

/** What `status` shows. */
interface DaemonStatus {
  readonly status: Status;
  readonly budget: Budget;
  readonly policies: readonly PolicyView[];
  /** The first held nodes, in the order of {@link readHeldNodes}. */
  readonly held: readonly HeldNodeView[];
}

/** Number of held nodes that `status` lists. */
const HELD_NODES_LISTED = 10;

/** `status`: shows the state of the running daemon: nodes, collectors, limits, policies, and what holds actions. */
export const runStatus = viewCommand(async (_, daemon) => {
  const value: DaemonStatus = {
    status: await daemon.get<Status>("/api/v1/status", { collectors: "object", remediation: "object" }),
    budget: await daemon.get<Budget>("/api/v1/budget", { categories: "object", month: "object" }),
    policies: await daemon.rows<PolicyView>("/api/v1/policies"),
    held: await readHeldNodes(HELD_NODES_LISTED, daemon),
  };
  return { value, format: (paint) => formatStatus(value, paint) };
});

function formatStatus({ status, budget, policies, held }: DaemonStatus, paint: Paint): string {
  const { remediation } = status;
  const upMs = Date.parse(status.now) - Date.parse(status.started_at);
  const summary: readonly (readonly [label: string, text: string | null])[] = [
    ["daemon", `proxywarden ${status.version}, up ${formatLength(upMs)}${leaderText(status.leader ?? null)}`],
    ["config", configText(status)],
    ["clock", clockText(status)],
    ["nodes", countsText(status, "nodes") + firstWalkText(status) + failureText(status, "nodes")],
    ["sessions", countsText(status, "sessions") + failureText(status, "sessions")],
    [
      "mode",
      `safety.mode is ${remediation.mode}; ${countNoun(remediation.in_flight, "action")} in flight, ${countNoun(remediation.awaiting_approval, "approval")} waiting${remediation.awaiting_approval === 0 ? "" : `: ${PROGRAM} approvals`}`,
    ],
    ...holdTexts(remediation).map((text) => ["actions held", text] as const),
    ...Object.entries(budget.categories).map(
      ([category, row]) => ["limits", `${category}: ${categoryText(row)}`] as const,
    ),
    ["month", monthText(budget.month)],
  ];
  const lines = summary.flatMap(([label, text]) =>
    text === null ? [] : [`${label.padEnd(14)}${stripControlCharacters(text)}\n`],
  );
  const heldNodes = heldTable(held, remediation.held_nodes, paint);
  return [lines.join(""), collectorTable(status, paint), policyTable(policies, paint), heldNodes]
    .filter(Boolean)
    .join("\n");
}

function leaderText(leader: LeaderView): string {
  if (leader === null) return "";
  if (leader.is_this) return ", leads";
  const where = leader.url === null ? "" : ` at ${leader.url}`;
  return leader.name === null ? ", stands by" : `, stands by for ${leader.name}${where}`;
}

const configText = ({ config_rejected_at: at = null }: Status): string | null =>
  at && `rejected at ${formatTime(at)}; the previous configuration stays active; run check to list the errors`;

/** The skew of the service's clock is shown if it is larger than this, as for the alert ProxywardenClockSkewed. */
const CLOCK_SKEW_SHOWN_SECONDS = 60;

function clockText({ service_clock_skew_seconds: skew }: Status): string | null {
  if (skew === null || Math.abs(skew) <= CLOCK_SKEW_SHOWN_SECONDS) return null;
  const direction = skew > 0 ? "ahead of" : "behind";
  return `the service's clock is ${formatDuration(Math.abs(skew))} ${direction} the daemon's`;
}

function countsText(status: Status, collector: "nodes" | "sessions"): string {
  const counts: Readonly<Record<string, number>> | null = status[collector];
  if (counts === null && standsBy(status.leader)) return `not known: ${NOT_POLLING}`;
  if (counts === null) return status.collectors[collector].planned === null ? "not collected" : "not known yet";
  const { total = 0, ...byStatus } = counts;
  const parts = Object.entries(byStatus).flatMap(([status, count]) =>
    count > 0 ? [`${formatCount(count)} ${status}`] : [],
  );
  return parts.length === 0 ? formatCount(total) : `${formatCount(total)}: ${parts.join(", ")}`;
}

const firstWalkText = ({ nodes, nodes_complete: isComplete }: Status): string =>
  nodes === null || isComplete ? "" : " so far; the first walk of the list has not completed yet";

/** Returns why the counts are old, or an empty string if the last read succeeded. */
function failureText({ collectors, now }: Status, collector: "nodes" | "sessions"): string {
  const { failure, last_success_at: readAt } = collectors[collector];
  if (failure === null) return "";
  const age = readAt === null ? "" : `, ${formatLength(Date.parse(now) - Date.parse(readAt))} ago`;
  return `${age} (can't be read now: ${failure.reason}: ${failure.message})`;
}

/** Returns what holds all actions, a line each. Entries that do not apply are null. */
function holdTexts({
  paused,
  breaker,
  trust,
  storm_until: storm,
  storm_cause: stormCause,
  journal,
  credentials = null,
  round_failure: round,
}: Status["remediation"]) {
  return [
    paused &&
      `paused since ${formatTime(paused.at)}${paused.operator === null ? "" : ` by ${paused.operator}`}${paused.until === null ? "" : `, until ${formatTime(paused.until)}`}: ${paused.reason}`,
    breaker &&
      `the circuit breaker has been open since ${formatTime(breaker.opened_at)}, after ${countNoun(breaker.nodes, "node")} had fired or been lost${breaker.causes === null ? "" : ` (${breaker.causes})`}; reset-breaker closes it`,
    credentials && `credentials: ${credentials}`,
    ...trust.map(({ reason, detail }) => `${reason}: ${detail}`),
    storm && `storm: ${stormCause}; actions held until at least ${formatTime(storm)}`,
    journal,
    round,
  ];
}

function categoryText({ configured, remaining_at_least: left }: Budget["categories"]["node_management"]): string {
  const { requests, burst, window_seconds: window } = configured;
  const every = window === MINUTE_MS / SECOND_MS ? "a minute" : `in ${formatDuration(window)}`;
  return `${left === null ? "unknown" : formatCount(left)} left; ${formatCount(requests)} ${every}, burst ${formatCount(burst)}`;
}

function monthText({ calls, calls_limit: limit, ends_at: end }: Budget["month"]): string {
  const made =
    limit === null ? `${countNoun(calls, "call")}; no limit` : `${formatCount(calls)} of ${formatCount(limit)} calls`;
  return `${made}; resets at ${formatTime(end)}`;
}

function collectorTable(status: Status, paint: Paint): string {
  const unplanned = standsBy(status.leader) ? "-" : "not collected";
  const cells = Object.entries(status.collectors).map(([collector, { planned, age_seconds: age, ...last }]) => {
    // The plan keeps the last interval that the month allowed.
    const isSpent = planned?.calls_per_minute === 0 && planned.bound_by === "month";
    const interval = planned === null ? unplanned : `every ${formatDuration(planned.interval_seconds)}`;
    return [
      collector,
      isSpent ? "stopped" : interval,
      age === null ? "-" : formatDuration(age.median),
      age === null ? "-" : formatDuration(age.max),
      isSpent && last.failure === null ? "no monthly calls left for polling" : stateText({ planned, ...last }),
    ];
  });
  return formatTable(["collector", "planned", "age: median", "oldest", "state"], cells, paint);
}

/** Returns the result of the last read of a collector. */
function stateText({
  planned,
  failure,
  last_success_at: readAt,
}: Pick<Status["collectors"]["nodes"], "planned" | "failure" | "last_success_at">): string {
  if (failure !== null) return `${failure.reason}: ${failure.message}`;
  if (readAt !== null) return "ok";
  return planned === null ? "-" : "not read yet";
}

function policyTable(policies: readonly PolicyView[], paint: Paint): string {
  if (policies.length === 0) return "";
  const cells = policies.map(
    ({ name, mode, fell_back: hasFallenBack, matched, pending, firing, unknown, episodes }) => [
      name,
      hasFallenBack ? `${mode} (healed too few nodes)` : mode,
      matched === null ? "" : `${formatCount(matched.nodes)} of ${countNoun(matched.of, "node")}`,
      String(pending),
      String(firing),
      unknown === null ? "" : String(unknown),
      Object.entries(episodes)
        .flatMap(([state, count]) => (count > 0 ? [`${count} ${episodeState(state)}`] : []))
        .join(", "),
    ],
  );
  return formatTable(["policy", "mode", "matches", "pending", "firing", "unknown", "episodes"], cells, paint);
}

function heldTable(held: readonly HeldNodeView[], total: number, paint: Paint): string {
  if (held.length === 0) return "";
  const rest = total - held.length;
  const more = rest <= 0 ? "" : `and ${formatCount(rest)} more: ${PROGRAM} nodes --held\n`;
  return formatHeldNodes(held, more, paint);
}
