import { SECOND_MS } from "../base/duration.ts";
import type { StateReader } from "../journal/state-export.ts";
import { EXPLAINED_ROWS_MAX } from "../model/remediation/journal.ts";
import { type EpochMs, isoAt } from "../model/time.ts";
import { systemClock } from "../platform/clock.ts";
import { presentTimer } from "../policy/timer.ts";
import { holdsAt } from "../remediation/operator-holds.ts";
import { stepName, timerView } from "../web/api/remediation-views.ts";
import { actionView, decisionView, episodeView, holdView, operatorCommandView } from "../web/api/row-views.ts";
import { type PastTime, timeOfOption } from "./arguments/past-time.ts";
import { readConfig } from "./config/config-loading.ts";
import { type CommandContext, failWith, type OutputOption, orFail, print } from "./context.ts";
import { DaemonClient, type DaemonConnectionOptions } from "./daemon-client.ts";
import { assertNodeText, resolveNode } from "./daemon-views/node-lookup.ts";
import {
  type DaemonExplanation,
  EXPLANATION_SHAPE,
  emptyPolicyReport,
  type NodeReport,
  type NodeRows,
  reportAsOf,
  withRecordedPolicies,
} from "./output/node-explanation.ts";
import { formatNodeReport } from "./output/node-explanation-text.ts";
import { readConfiguredState } from "./state/state-store.ts";

/** Options of `explain`. */
export interface ExplainOptions extends DaemonConnectionOptions, OutputOption {
  /** Configuration whose journal is read. Absent means that the running daemon is asked. */
  readonly config?: string;
  /** Absent means now. */
  readonly at?: PastTime;
}

/** `explain NODE`: explains why a node was or was not acted on. With a configuration, the node is named by its id. */
export async function runExplain(
  options: ExplainOptions,
  context: CommandContext,
  [node = ""]: readonly string[],
): Promise<void> {
  const { config } = options;
  const daemon = new DaemonClient(options, context);
  const now = config === undefined ? () => daemon.now() : systemClock.now;
  const at = options.at === undefined ? undefined : timeOfOption("--at", options.at, await now());
  const report =
    config === undefined
      ? await explainFromDaemon(node, at, daemon)
      : await explainFromJournal(node, config, at, context);
  const shown = at === undefined ? report : reportAsOf(report, isoAt(at));
  print(context, options, withRecordedPolicies(shown), formatNodeReport);
}

async function explainFromDaemon(named: string, at: EpochMs | undefined, daemon: DaemonClient): Promise<NodeReport> {
  const id = await resolveNode(named, daemon);
  // Without `until`, the response holds only the latest rows.
  const path = `/api/v1/nodes/${encodeURIComponent(id)}${at === undefined ? "" : `?until=${isoAt(at)}`}`;
  const response = await daemon.get<DaemonExplanation>(path, EXPLANATION_SHAPE);
  const { explained_at, known, holds, episodes, actions, decisions, orders, ...rest } = response;
  // A standby explains only what was recorded about the node, which it does not observe.
  const policies = known ? rest.policies : rest.policies.map((policy) => ({ ...policy, blockers: null }));
  const rows = { holds, episodes, actions, decisions, orders };
  const { status, name = null, country = null, region = null, last_seen = null, age_seconds = null } = rest;
  const seen = status === undefined ? null : { status, name, country, region, last_seen, age_seconds };
  return { id, explained_at, source: "daemon", seen, policies, ...rows };
}

/** Returns a report without verdicts, which only the running daemon knows. */
async function explainFromJournal(
  id: string,
  file: string,
  at: EpochMs | undefined,
  { env, stop }: CommandContext,
): Promise<NodeReport> {
  assertNodeText(id);
  const loaded = orFail(readConfig(file, env, ["state"]));
  const now = systemClock.now();
  const read = async (journal: StateReader) => ({
    rows: await readNodeRows(journal, id, at, now),
    timers: await journal.timers(id),
  });
  const journaled = await readConfiguredState(loaded.config.state, read, stop).catch(
    failWith("the journal can't be read"),
  );
  const { rows, timers } = orFail(journaled);
  const policies = loaded.policies.map((spec) => {
    const timer = timers.find(({ policy }) => policy === spec.name);
    return {
      ...emptyPolicyReport(spec.name),
      for_seconds: spec.forMs / SECOND_MS,
      steps: spec.steps.map(stepName),
      timer: timer === undefined ? null : timerView(presentTimer(timer)),
    };
  });
  return { id, explained_at: isoAt(now), source: "journal", seen: null, policies, ...rows };
}

/** Reads the latest rows of a node up to `until`, if given, and its holds in force then, or else at `now`. */
async function readNodeRows(
  journal: StateReader,
  node: string,
  until: EpochMs | undefined,
  now: EpochMs,
): Promise<NodeRows> {
  const query = { node, limit: EXPLAINED_ROWS_MAX, ...(until === undefined ? {} : { until }) };
  return {
    holds: holdsAt(await journal.holds(node), until ?? now).map(holdView),
    episodes: (await journal.episodes(query)).map(episodeView),
    actions: (await journal.actions(query)).map(actionView),
    decisions: (await journal.decisions(query)).map(decisionView),
    orders: (await journal.operatorCommands(query)).map(operatorCommandView),
  };
}
