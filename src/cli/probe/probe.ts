import { fail, ok, type Result } from "../../base/result.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { PolicySpec } from "../../config/schema/policy.ts";
import { closeResources, openConfigResources } from "../../daemon/config-resources.ts";
import type { StoreFailure } from "../../journal/open-failure.ts";
import type { ExternalBlockers } from "../../model/ports.ts";
import { systemClock } from "../../platform/clock.ts";
import { nameOfExternalBlocker } from "../../remediation/evaluation/external-blockers.ts";
import { countNoun } from "../../web/ui/page/format.ts";
import { type CommandContext, orStopped, type Problem } from "../context.ts";
import { createServiceAccess, type StoredState } from "../network-size.ts";
import { withProgress } from "../output/progress.ts";
import { type Paint, stripControlCharacters } from "../output/text.ts";
import { type Finding, findingsOf } from "./findings.ts";
import { DETAILS_READ, observeService, PROBE_CALLS_MAX, type ProbedCall } from "./service-probe.ts";

/** Result of a probe. */
export interface ProbeReport {
  readonly url: string;
  readonly calls: readonly ProbedCall[];
  readonly findings: readonly Finding[];
  /** Number of nodes that the service reports, or null if no page of them could be read. */
  readonly nodes: number | null;
}

/**
 * Asks the service for what the API documentation leaves open, within the rate limits and the calls of the month that
 * `stored` leaves. Announces its calls on standard error. Fails if too few calls are left, or it is unknown how many.
 * Throws {@link CommandFailure} when the process is asked to stop.
 */
export async function probeService(
  loaded: LoadedConfig,
  stored: Result<StoredState, StoreFailure>,
  { err, stop, version }: CommandContext,
): Promise<Result<ProbeReport, readonly Problem[]>> {
  const { config } = loaded;
  const resources = openConfigResources(loaded, { clock: systemClock, version });
  if (!resources.ok) return resources;
  try {
    const { settings } = resources.value;
    const { callsPerMonth } = settings.limits.plan;
    const shortage = callsPerMonth === null ? null : callShortage(callsPerMonth, stored);
    if (shortage !== null) return fail([shortage]);
    const url = config.service.base_url;
    err.write(
      `asking ${url}, read-only and within the limits: pages of GET /v1/nodes, GET /v1/nodes/ID of ${DETAILS_READ} nodes, a page of GET /v1/sessions; at most ${PROBE_CALLS_MAX} calls\n`,
    );
    const access = createServiceAccess(resources.value, version);
    const observing = orStopped(observeService(access, settings.pageLimit, stop), stop);
    const observed = await withProgress(`asking ${url}`, observing, { err });
    const nodes = observed.nodes?.page.total ?? null;
    const { externalBlockers } = resources.value.integrations;
    const blockers = await orStopped(probeBlockers(loaded.policies, externalBlockers, stop), stop);
    return ok({ url, calls: observed.calls, findings: [...findingsOf(observed, config), ...blockers], nodes });
  } finally {
    await closeResources(resources.value);
  }
}

/** Returns why the calls that are left in this month do not allow a probe, or null if they do. */
function callShortage(callsPerMonth: number, stored: Result<StoredState, StoreFailure>): string | null {
  if (!stored.ok)
    return `no call was made, because it is unknown how many are left in this month: ${stored.error.message}`;
  const { callsUsed } = stored.value.month;
  if (callsUsed + PROBE_CALLS_MAX <= callsPerMonth) return null;
  return `${Math.max(0, callsPerMonth - callsUsed)} of ${callsPerMonth} calls of this month are left; the probe may need ${PROBE_CALLS_MAX}; no call was made`;
}

/**
 * Checks each entry of `blocked_by` of each policy once. One that fails, such as invalid PromQL, holds its policy. Returns
 * one finding, or none if there are no entries.
 */
async function probeBlockers(
  policies: readonly PolicySpec[],
  externalBlockers: ExternalBlockers,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const answers = await Promise.all(
    policies.flatMap(({ name, blockedBy }) =>
      blockedBy.map(async (blocker) => {
        const answer = await externalBlockers.blocks(blocker, signal);
        const outcome = answer.ok ? (answer.value ? "blocks now" : "does not block now") : `fails: ${answer.error}`;
        return { answer, text: `policy ${name}: ${nameOfExternalBlocker(blocker)}: ${outcome}` };
      }),
    ),
  );
  if (answers.length === 0) return [];
  const problem = answers.some(({ answer }) => !answer.ok);
  const hint = problem ? "; an entry of blocked_by that fails holds its policy" : "";
  const text = `${answers.map((answer) => answer.text).join("; ")}${hint}`;
  return [{ about: "blocked_by", value: !problem, certain: true, text, problem }];
}

/** Formats a probe as text, with problems marked. The last line has the number of calls. */
export function formatProbe({ url, calls, findings }: ProbeReport, paint: Paint): string {
  const lines = findings.map(({ about, text, problem }) => {
    const mark = problem === true ? `${paint("bad", "problem:")} ` : "";
    return `  ${about.replace("_", " ").padEnd(11)}  ${mark}${stripControlCharacters(text)}`;
  });
  return `what ${url} showed:\n${lines.join("\n")}\nused ${countNoun(calls.length, "call")}\n`;
}

/** Returns a probe as JSON, in snake_case. */
export const probeJson = ({ url, calls, findings }: ProbeReport): object => ({
  url,
  findings: Object.fromEntries(
    findings.map(({ about, value, certain, text, problem = false }) => [about, { value, certain, problem, text }]),
  ),
  calls: calls.map(({ path, status, error }) => ({ path, status, error })),
});
