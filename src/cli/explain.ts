import { SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { policyRulesOf } from "../daemon/policy-settings.ts";
import { openStoreReadOnly } from "../journal/reader.ts";
import type { PolicyRule } from "../model/policy/policy.ts";
import type { JournalReader } from "../model/remediation/journal.ts";
import type { EpochMs } from "../model/time.ts";
import { createSystemClock } from "../platform/clock.ts";
import { presentTimer } from "../policy/timers/timer.ts";
import { isoAt } from "../web/api/notation.ts";
import { stepName, timerView } from "../web/api/remediation-views.ts";
import {
  type ActionView,
  actionView,
  type DecisionView,
  decisionView,
  episodeView,
  holdView,
  orderView,
} from "../web/api/row-views.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, type ExitCode } from "./context.ts";
import { type DaemonRequest, isRowList, requestDaemon } from "./daemon-api/client.ts";
import type { DaemonAccessOptions } from "./daemon-api/connection.ts";
import { createPaint } from "./output/colour.ts";
import {
  emptyPolicyReport,
  isExplanation,
  type NodeReport,
  type NodeRows,
  rowsAsOf,
  withRecordedPolicies,
} from "./output/node-explanation.ts";
import { formatNodeReport } from "./output/node-explanation-text.ts";
import { withProgress } from "./output/progress.ts";

/** Options of `explain`. */
export interface ExplainOptions extends DaemonAccessOptions {
  /** Configuration whose journal is read; absent: the running daemon is asked. */
  readonly config?: string;
  /** Absent: now. */
  readonly at?: EpochMs;
  readonly output: "text" | "json";
}

/** Rows of each kind that are read: a node has a few episodes, of a few steps each. */
const ROWS_MAX = 100;

/** `explain NODE_ID`: why the node was, or was not, acted on. */
export async function runExplain(node: string, options: ExplainOptions, context: CommandContext): Promise<ExitCode> {
  const told =
    options.config === undefined
      ? await withProgress(`waiting for ${options.url}`, explainFromDaemon(node, options, context.env), context)
      : explainFromJournal(node, options.config, options.at, context.env);
  if (!told.ok) {
    context.err.write(told.error.map((problem) => `proxywarden: ${problem}\n`).join(""));
    return EXIT_FAILURE;
  }
  const text = (report: NodeReport) => formatNodeReport(report, createPaint(context.out, context.env));
  context.out.write(options.output === "json" ? `${JSON.stringify(told.value, null, 2)}\n` : text(told.value));
  return EXIT_OK;
}

async function explainFromDaemon(
  node: string,
  options: ExplainOptions,
  env: CommandContext["env"],
): Promise<Result<NodeReport, readonly string[]>> {
  const { at } = options;
  const get = (path: string): DaemonRequest => ({ method: "GET", path, token: null });
  const answer = await requestDaemon(options, env, get(`/api/v1/nodes/${encodeURIComponent(node)}`), isExplanation);
  if (!answer.ok) return fail([answer.error]);
  const { explained_at, policies, holds, episodes, actions, decisions, orders, ...rest } = answer.value;
  const { status, name = null, country = null, region = null, last_seen = null, age_seconds = null } = rest;
  const now: NodeReport = {
    id: node,
    explained_at,
    source: "daemon",
    seen: status === undefined ? null : { status, name, country, region, last_seen, age_seconds },
    policies: withRecordedPolicies(policies, { holds, episodes, actions, decisions, orders }),
    ...{ holds, episodes, actions, decisions, orders },
  };
  if (at === undefined) return ok(now);
  // What the daemon shows of the node reaches back so far; of what is older it is asked for by itself.
  const search = `node=${encodeURIComponent(node)}&until=${isoAt(at)}&limit=${ROWS_MAX}`;
  const past = await requestDaemon(options, env, get(`/api/v1/decisions?${search}`), isRowList<DecisionView>);
  if (!past.ok) return fail([past.error]);
  const done = await requestDaemon(options, env, get(`/api/v1/actions?${search}`), isRowList<ActionView>);
  if (!done.ok) return fail([done.error]);
  return ok(
    explanationAsOf(node, { holds, episodes, actions: done.value.data, decisions: past.value.data, orders }, at),
  );
}

function explainFromJournal(
  node: string,
  file: string,
  at: EpochMs | undefined,
  env: CommandContext["env"],
): Result<NodeReport, readonly string[]> {
  const read = readConfigFile(file, env);
  if (!read.ok) return read;
  const rules = policyRulesOf(read.value);
  const opened = openStoreReadOnly(read.value.config.state.path);
  if (!opened.ok) return fail([opened.error.message]);
  try {
    const rows = readNodeRows(opened.value, node, at);
    if (at !== undefined) return ok(explanationAsOf(node, rows, at));
    return ok(explanationNow(node, rows, opened.value, rules));
  } catch (error) {
    return fail([`the journal can't be read: ${error instanceof Error ? error.message : String(error)}`]);
  } finally {
    opened.value.close();
  }
}

function readNodeRows(journal: JournalReader, node: string, until: EpochMs | undefined): NodeRows {
  const query = { node, limit: ROWS_MAX, ...(until === undefined ? {} : { until }) };
  return {
    holds: journal.holds(node).map(holdView),
    episodes: journal.episodes(query).map(episodeView),
    actions: journal.actions(query).map(actionView),
    decisions: journal.decisions(query).map(decisionView),
    orders: journal.operatorCommands(query).map(orderView),
  };
}

/** Verdicts are made of what the daemon sees, and in its memory alone: here stands what it wrote down. */
function explanationNow(
  node: string,
  rows: NodeRows,
  journal: JournalReader,
  rules: readonly PolicyRule[],
): NodeReport {
  const timers = journal.timers(node);
  const policies = rules.map((rule) => {
    const timer = timers.find(({ policy }) => policy === rule.name);
    return {
      ...emptyPolicyReport(rule.name),
      for_seconds: rule.forMs / SECOND_MS,
      steps: rule.steps.map(stepName),
      timer: timer === undefined ? null : timerView(presentTimer(timer)),
    };
  });
  return {
    id: node,
    explained_at: isoAt(createSystemClock().now()),
    ...{ source: "journal" as const, seen: null },
    policies: withRecordedPolicies(policies, rows),
    ...rows,
  };
}

function explanationAsOf(node: string, rows: NodeRows, at: EpochMs): NodeReport {
  const then = rowsAsOf(rows, isoAt(at));
  return {
    id: node,
    explained_at: isoAt(at),
    ...{ source: "past" as const, seen: null },
    policies: withRecordedPolicies([], then),
    ...then,
  };
}
