import { fail, ok, type Result } from "../base/result.ts";
import { type ConfigProblem, locateProblem } from "../config/diagnostics/problem.ts";
import { PROBE_HINT } from "../config/diagnostics/warnings.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema/config.ts";
import type { PolicySpec } from "../config/schema/policy.ts";
import { closeResources, openConfigResources } from "../daemon/config-resources.ts";
import type { StoreFailure } from "../journal/open-failure.ts";
import { systemClock } from "../platform/clock.ts";
import { canHold } from "../policy/cel/constancy.ts";
import { compileExpression } from "../policy/cel/expression.ts";
import { idleReasons, worstCase, zeroLimits } from "../policy/worst-case.ts";
import { countNoun } from "../web/ui/page/format.ts";
import { type FileProblem, placeholderProblem, readConfig } from "./config/config-loading.ts";
import { planWarnings } from "./config/plan-warnings.ts";
import {
  type CommandContext,
  CommandFailure,
  type OutputOption,
  type Problem,
  print,
  printProblems,
  printWarnings,
  problemText,
} from "./context.ts";
import { fleetSize, givenNetworkSize, readStoredState, type StoredState } from "./network-size.ts";
import { formatLimits, formatWorstCase, limitsJson, worstCaseJson } from "./output/safety-limits.ts";
import { formatProbe, type ProbeReport, probeJson, probeService } from "./probe/probe.ts";
import { stateProblem } from "./state/state-store.ts";

interface CheckOptions extends OutputOption {
  readonly config: string;
  /** Size of the fleet. Absent means the size that a probe shows, or else the one that the daemon saw last. */
  readonly nodes?: number;
  /** Whether to ask the service. */
  readonly probe?: boolean;
}

/**
 * `check --config FILE`: lists the errors that make `run` fail, the warnings, the most nodes that policies could act
 * on, and the limits for this fleet. With `--probe`, also what the service shows.
 */
export async function runCheck(options: CheckOptions, context: CommandContext): Promise<void> {
  const checked = await checkConfig(options.config, context);
  if (!checked.ok) {
    const errors = checked.error;
    const { config: file } = options;
    const unknown = { worst_case: null, limits: null, enforces_nothing_because: null, probe: null };
    const report = { file, valid: false, errors, warnings: [], ...unknown };
    if (options.output === "text") printProblems(context, errors);
    print(context, options, report, (_, paint) => `${file}: ${paint("bad", countNoun(errors.length, "error"))}\n`);
    throw new CommandFailure();
  }
  const { loaded, stored } = checked.value;
  const probe = options.probe === true ? await probeService(loaded, stored, context) : null;
  printReport(checked.value, probe, options, context);
  if (probe?.ok === false) throw new CommandFailure(probe.error);
  if (probe?.value.findings.some(({ problem }) => problem)) throw new CommandFailure();
}

function printReport(
  { loaded, stored }: CheckedConfig,
  probe: Result<ProbeReport, readonly Problem[]> | null,
  options: CheckOptions,
  context: CommandContext,
): void {
  const { config, policies } = loaded;
  const notEnforcedReasons = reasonsNotEnforced(loaded);
  const worst = worstCase(config.safety, policies);
  const seen = stored.ok ? stored.value : null;
  const size = fleetSize(options.nodes, probe?.ok ? probe.value.nodes : null, seen);
  const planned = givenNetworkSize({ nodes: size?.nodes ?? 0 }, seen?.networkSize ?? null, config.service.page_limit);
  const warnings = [
    ...loaded.warnings,
    ...planWarnings(loaded, planned),
    ...(stored.ok ? [] : [journalProblem(loaded, warningOf(stored.error))]),
  ];
  const report = {
    file: options.config,
    valid: true,
    errors: [],
    warnings,
    worst_case: worstCaseJson(worst),
    limits: limitsJson(config.safety, size),
    enforces_nothing_because: notEnforcedReasons,
    probe: probe && (probe.ok ? probeJson(probe.value) : { error: probe.error.map(problemText).join("; ") }),
  };
  if (options.output === "text") {
    const texts = warnings.map(problemText);
    printWarnings(
      context,
      probe?.ok ? texts.map((text) => text.replace(PROBE_HINT, "; see usage scale below")) : texts,
    );
  }
  print(context, options, report, ({ file }, paint) => {
    const verdict = `${file}: ${paint("good", "valid")}\n`;
    const safety =
      policies.length === 0
        ? ""
        : `${formatWorstCase(worst, config.safety, policies.length)}${formatLimits(config.safety, size, probe !== null)}`;
    return `${verdict}${safety}${formatNotEnforcedReasons(notEnforcedReasons)}${probe?.ok ? formatProbe(probe.value, paint) : ""}`;
  });
}

/** A valid configuration, and what its daemon has stored. */
interface CheckedConfig {
  readonly loaded: LoadedConfig;
  readonly stored: Result<StoredState, StoreFailure>;
}

async function checkConfig(
  file: string,
  { env, err, stop, version }: CommandContext,
): Promise<Result<CheckedConfig, readonly FileProblem[]>> {
  const parsed = readConfig(file, env);
  if (!parsed.ok) return parsed;
  const resources = openConfigResources(parsed.value, { clock: systemClock, version });
  if (resources.ok) await closeResources(resources.value);
  const unusable = await stateProblem(parsed.value.config.state);
  const placeholder = placeholderProblem(parsed.value);
  const problems = [
    ...(placeholder === null ? [] : [placeholder]),
    ...(resources.ok ? [] : resources.error),
    ...(unusable === null ? [] : [locateProblem(parsed.value.keys, unusable)]),
  ];
  if (problems.length > 0) return fail(problems);
  const stored = await readStoredState(parsed.value.config, { err, stop });
  const refusal = !stored.ok && (stored.error.kind === "unsupported" || stored.error.kind === "unusable");
  if (refusal) return fail([journalProblem(parsed.value, stored.error.message)]);
  return ok({ loaded: parsed.value, stored });
}

/** Returns the warning about a state that can't be read although `run` starts with it. */
const warningOf = ({ kind, message }: StoreFailure): string =>
  kind === "unreachable" ? `${message}; nothing in the database was checked` : message;

const journalProblem = ({ config: { state }, keys }: LoadedConfig, message: string): ConfigProblem =>
  locateProblem(keys, { key: state.postgres === undefined ? "state.path" : "state.postgres", message });

/** Returns why no policy acts without an operator. The list is empty if a policy may act. */
function reasonsNotEnforced({ config, policies }: LoadedConfig): readonly string[] {
  if (policies.length === 0) {
    const reason =
      config.policies.length === 0 ? "the key policies is empty" : "the files listed under policies define none";
    return [`no policy is in force: ${reason}`];
  }
  const reasons = fleetReasons(config);
  const ofPolicies = policies.map((policy) => policyReasons(policy, config));
  if (ofPolicies.every((each) => each.length > 0)) {
    reasons.push(...policies.map(({ name }, index) => `policy ${name} ${ofPolicies[index]!.join(", and ")}`));
  }
  return reasons;
}

function fleetReasons({ safety }: Config): string[] {
  const ceilings = {
    dry_run: ["safety.mode is dry_run, the upper limit for the mode of every policy"],
    approve: ["safety.mode is approve: an operator must approve each action"],
    enforce: [],
  };
  return [...ceilings[safety.mode], ...zeroLimits(safety).map((limit) => `safety.${limit} is 0`)];
}

function policyReasons(policy: PolicySpec, { service }: Config): string[] {
  const compiled = compileExpression(policy.when);
  const needsUsage = compiled.ok && !canHold(compiled.value.condition, ({ isUsage }) => isUsage);
  return [
    ...(policy.mode === "dry_run" ? ["has the mode dry_run"] : []),
    ...(policy.mode === "approve" ? ["has the mode approve: an operator must approve each action"] : []),
    ...idleReasons(policy),
    ...(needsUsage && service.usage_scale === undefined
      ? ["depends on usage, and service.usage_scale is not set"]
      : []),
  ];
}

/** Formats the reasons as lines. Returns an empty string if there are none. */
const formatNotEnforcedReasons = (reasons: readonly string[]): string =>
  reasons.length === 0 ? "" : `enforces nothing because\n${reasons.map((reason) => `  ${reason}\n`).join("")}`;
