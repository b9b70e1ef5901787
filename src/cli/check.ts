import { formatPercent } from "../base/percent.ts";
import { fail, type Result } from "../base/result.ts";
import { type ConfigProblem, formatProblem } from "../config/diagnostics/problem.ts";
import type { LoadedConfig } from "../config/load.ts";
import { policyRulesOf } from "../config/policy-file.ts";
import { closeResources, openConfigResources } from "../daemon/config-resources.ts";
import { stateFolderProblem } from "../journal/open-failure.ts";
import { MODES } from "../model/policy/policy.ts";
import { createSystemClock } from "../platform/clock.ts";
import { type ModeWorstCase, type WorstCase, worstCase } from "../policy/guards/worst-case.ts";
import { parseConfig, readConfigText } from "./config/config-loading.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, printJson, readTextFile } from "./context.ts";
import { fleetSize, formatLimits, limitsJson } from "./network-size/fleet-limits.ts";
import { createPaint } from "./output/color.ts";

interface CheckOptions {
  readonly config: string;
  /** Size of the fleet; absent: the size that the daemon saw last. */
  readonly nodes?: number;
  readonly output: "text" | "json";
}

/**
 * `check --config FILE`: lists the errors that make `run` fail, the warnings, the most nodes that policies could act on, and
 * the limits for this fleet.
 */
export async function runCheck({ config: file, nodes, output }: CheckOptions, context: CommandContext) {
  const checked = await checkFile(file, context);
  const errors = checked.ok ? [] : checked.error;
  const warnings = checked.ok ? checked.value.warnings : [];
  const worst = checked.ok ? worstCase(checked.value.config.safety, policyRulesOf(checked.value.policies)) : null;
  if (output === "json") {
    const shown = worst === null ? null : worstCaseJson(worst);
    const limits = checked.ok ? limitsJson(checked.value.config, sizeOf(checked.value, nodes)) : null;
    const report = { file, valid: checked.ok, errors, warnings, worst_case: shown, limits };
    printJson(context, report);
  } else {
    const [paint, paintError] = [createPaint(context.out, context.env), createPaint(context.err, context.env)];
    for (const error of errors) context.err.write(`${typeof error === "string" ? error : formatProblem(error)}\n`);
    const label = paintError("warning", "warning:");
    for (const warning of warnings) context.err.write(`${label} ${formatProblem(warning)}\n`);
    const count = `${errors.length} ${errors.length === 1 ? "error" : "errors"}`;
    context.out.write(`${file}: ${checked.ok ? paint("good", "valid") : paint("bad", count)}\n`);
    if (worst !== null && checked.ok && checked.value.policies.length > 0) {
      context.out.write(formatWorstCase(worst, checked.value));
      context.out.write(formatLimits(checked.value.config, sizeOf(checked.value, nodes)));
    }
  }
  return checked.ok ? EXIT_OK : EXIT_FAILURE;
}

const sizeOf = ({ config }: LoadedConfig, given: number | undefined) =>
  fleetSize(given, config, createSystemClock().now());

type CheckProblem = ConfigProblem | string;

async function checkFile(
  file: string,
  { env, version }: CommandContext,
): Promise<Result<LoadedConfig, readonly CheckProblem[]>> {
  const text = readConfigText(file);
  if (!text.ok) return fail([text.error]);
  const parsed = parseConfig(file, text.value, env);
  if (!parsed.ok) return parsed;
  const resources = openConfigResources(parsed.value, { clock: createSystemClock(), readFile: readTextFile, version });
  if (resources.ok) await closeResources(resources.value);
  const unusable = stateFolderProblem(parsed.value.config.state.path);
  const problems = [
    ...(resources.ok ? [] : resources.error),
    ...(unusable === null ? [] : [`state.path: ${unusable}`]),
  ];
  return problems.length === 0 ? parsed : fail(problems.map((problem) => `${file}: ${problem}`));
}

function formatWorstCase({ activeMode, modes }: WorstCase, { config, policies }: LoadedConfig): string {
  const share = formatPercent(config.safety.maxDisrupted.share);
  const lines = MODES.map((mode) => {
    const name = `${mode}${mode === activeMode ? " (in force)" : ""}`;
    return `  ${name.padEnd(19)} ${formatModeWorstCase(modes[mode], share)}`;
  });
  const count = `${policies.length} ${policies.length === 1 ? "policy" : "policies"}`;
  return `${count}; most nodes that policies can act on, by safety.mode:\n${lines.join("\n")}\n`;
}

function formatModeWorstCase(
  { automaticPolicies, approvalPolicies, nodesPerHour, nodesAtOnce }: ModeWorstCase,
  share: string,
): string {
  if (nodesPerHour.fleet === 0) return "none";
  const who = [
    ...(automaticPolicies.length === 0 ? [] : [`automatically: ${automaticPolicies.join(", ")}`]),
    ...(approvalPolicies.length === 0 ? [] : [`after approval: ${approvalPolicies.join(", ")}`]),
  ];
  const perDomain = (domain: "region" | "country") =>
    `of one ${domain} ${nodesPerHour[domain]}, ${nodesAtOnce[domain]} at once`;
  const fleet = `${nodesPerHour.fleet} per hour, ${nodesAtOnce.fleet} at once and at most ${share} of the fleet`;
  return `${fleet}; ${perDomain("region")}; ${perDomain("country")}; ${who.join("; ")}`;
}

/** The worst case as JSON, in snake_case. */
function worstCaseJson({ activeMode, modes }: WorstCase): object {
  const entries = MODES.map((mode) => {
    const { automaticPolicies: acting, approvalPolicies: asking, nodesPerHour, nodesAtOnce } = modes[mode];
    return [mode, { acting, asking, nodes_an_hour: nodesPerHour, nodes_at_once: nodesAtOnce }];
  });
  return { in_force: activeMode, modes: Object.fromEntries(entries) };
}
