import { SECOND_MS } from "../base/duration.ts";
import { errorMessage, fail, ok, type Result } from "../base/result.ts";
import type { StateReader } from "../journal/state-export.ts";
import { EXPLAINED_ROWS_MAX } from "../model/remediation/journal.ts";
import { type EpochMs, isoAt } from "../model/time.ts";
import { systemClock } from "../platform/clock.ts";
import { presentTimer } from "../policy/timer.ts";
import { stepName, timerView } from "../web/api/remediation-views.ts";
import { actionView, decisionView, episodeView, holdView, operatorCommandView } from "../web/api/row-views.ts";
import { type PastTime, resolvePastTime } from "./arguments/past-time.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { type CommandContext, type ExitCode, failWith, type OutputOption, print } from "./context.ts";
import { DaemonClient, type DaemonConnectionOptions } from "./daemon-client.ts";
import { resolveNode } from "./daemon-views/node-lookup.ts";
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
  /** Configuration whose journal is read; if absent, the running daemon is asked. */
  readonly config?: string;
  /** Absent means now. */
  readonly at?: PastTime;
}

/** `explain NODE`: explains why a node was or was not acted on. With a configuration, the node is named by its id. */
export async function runExplain(
  options: ExplainOptions,
  context: CommandContext,
  [node = ""]: readonly string[],
): Promise<ExitCode> {
  const { config } = options;
  const daemon = new DaemonClient(options, context);
  const time = config === undefined ? await daemon.timeOf("--at", options.at) : timeOf(options.at);
  if (!time.ok) return failWith(context, time.error);
  const { value: at } = time;
  const read =
    config === undefined
      ? await explainFromDaemon(node, at, daemon)
      : await explainFromJournal(node, config, at, context.env);
  if (!read.ok) return failWith(context, read.error);
  const report = at === undefined ? read.value : reportAsOf(read.value, isoAt(at));
  return print(context, options, withRecordedPolicies(report), formatNodeReport);
}

/** Returns the time that `--at` means by the clock of this machine. Undefined if it is not given. */
function timeOf(time: PastTime | undefined): Result<EpochMs | undefined, string> {
  if (time === undefined) return ok(undefined);
  const at = resolvePastTime(time, systemClock.now());
  return at.ok ? at : fail(`--at: ${at.error}`);
}

async function explainFromDaemon(
  named: string,
  at: EpochMs | undefined,
  daemon: DaemonClient,
): Promise<Result<NodeReport, readonly string[]>> {
  const resolved = await resolveNode(named, daemon);
  if (!resolved.ok) return fail([resolved.error]);
  const { value: id } = resolved;
  // Without `until`, the response holds only the latest rows.
  const path = `/api/v1/nodes/${encodeURIComponent(id)}${at === undefined ? "" : `?until=${isoAt(at)}`}`;
  const response = await daemon.get<DaemonExplanation>(path, EXPLANATION_SHAPE);
  if (!response.ok) return fail([response.error]);
  const { explained_at, policies, holds, episodes, actions, decisions, orders, ...rest } = response.value;
  const rows = { holds, episodes, actions, decisions, orders };
  const { status, name = null, country = null, region = null, last_seen = null, age_seconds = null } = rest;
  const seen = status === undefined ? null : { status, name, country, region, last_seen, age_seconds };
  return ok({ id, explained_at, source: "daemon", seen, policies, ...rows });
}

/** Returns a report without verdicts, which only the running daemon knows. */
async function explainFromJournal(
  id: string,
  file: string,
  at: EpochMs | undefined,
  env: NodeJS.ProcessEnv,
): Promise<Result<NodeReport, readonly string[]>> {
  const read = readConfigFile(file, env, []);
  if (!read.ok) return read;
  try {
    const journaled = await readConfiguredState(read.value.config.state, async (journal) => ({
      rows: await readNodeRows(journal, id, at),
      timers: await journal.timers(id),
    }));
    if (!journaled.ok) return fail([journaled.error.message]);
    const { rows, timers } = journaled.value;
    const policies = read.value.policies.map((spec) => {
      const timer = timers.find(({ policy }) => policy === spec.name);
      return {
        ...emptyPolicyReport(spec.name),
        for_seconds: spec.forMs / SECOND_MS,
        steps: spec.steps.map(stepName),
        timer: timer === undefined ? null : timerView(presentTimer(timer)),
      };
    });
    const explained_at = isoAt(systemClock.now());
    return ok({ id, explained_at, source: "journal", seen: null, policies, ...rows });
  } catch (error) {
    return fail([`the journal can't be read: ${errorMessage(error)}`]);
  }
}

async function readNodeRows(journal: StateReader, node: string, until: EpochMs | undefined): Promise<NodeRows> {
  const query = { node, limit: EXPLAINED_ROWS_MAX, ...(until === undefined ? {} : { until }) };
  return {
    holds: (await journal.holds(node)).map(holdView),
    episodes: (await journal.episodes(query)).map(episodeView),
    actions: (await journal.actions(query)).map(actionView),
    decisions: (await journal.decisions(query)).map(decisionView),
    orders: (await journal.operatorCommands(query)).map(operatorCommandView),
  };
}
