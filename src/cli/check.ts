import { formatPercent } from "../base/percent.ts";
import { fail, type Result } from "../base/result.ts";
import { type ConfigProblem, formatProblem } from "../config/diagnostics/problem.ts";
import type { LoadedConfig } from "../config/load.ts";
import { openConfigResources } from "../daemon/active-config.ts";
import { policyRulesOf, safetyOf } from "../daemon/policy-settings.ts";
import { stateFolderProblem } from "../journal/open-failure.ts";
import { MODES, type Mode } from "../model/policy/policy.ts";
import { createSystemClock } from "../platform/clock.ts";
import { type MaxNodes, type ModeWorstCase, type WorstCase, worstCase } from "../policy/guards/worst-case.ts";
import { parseConfig, readConfigText } from "./config/config-loading.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, type ExitCode, readTextFile } from "./context.ts";
import { fleetSize, formatLimits, limitsJson } from "./network-size/fleet-limits.ts";
import { createPaint } from "./output/colour.ts";

interface CheckOptions {
  readonly config: string;
  /** Size of the fleet; absent: as the daemon saw it last. */
  readonly nodes?: number;
  readonly output: "text" | "json";
}

/**
 * `check --config FILE`: everything that `run` would refuse, warnings, the most nodes that policies could act on, and what
 * the limits come to on this fleet.
 */
export async function runCheck(
  { config: file, nodes, output }: CheckOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const checked = await checkFile(file, context);
  const errors = checked.ok ? [] : checked.error;
  const warnings = checked.ok ? checked.value.warnings : [];
  const worst = checked.ok ? worstCase(safetyOf(checked.value.config), policyRulesOf(checked.value)) : null;
  if (output === "json") {
    const shown = worst === null ? null : worstCaseJson(worst);
    const limits = checked.ok ? limitsJson(checked.value.config, sizeOf(checked.value, nodes)) : null;
    const report = { file, valid: checked.ok, errors, warnings, worst_case: shown, limits };
    context.out.write(`${JSON.stringify(report, null, 2)}\n`);
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
  const access = openConfigResources(parsed.value, { clock: createSystemClock(), readFile: readTextFile, version });
  if (access.ok) await Promise.all([access.value.transport.close(), access.value.integrations.close()]);
  const unusable = stateFolderProblem(parsed.value.config.state.path);
  const problems = [...(access.ok ? [] : access.error), ...(unusable === null ? [] : [`state.path: ${unusable}`])];
  return problems.length === 0 ? parsed : fail(problems.map((problem) => `${file}: ${problem}`));
}

function formatWorstCase({ activeMode: inForce, modes }: WorstCase, { config, policies }: LoadedConfig): string {
  const share = formatPercent(config.safety.max_disrupted.percent);
  const lines = MODES.map((mode) => {
    const name = `${mode}${mode === inForce ? " (in force)" : ""}`;
    return `  ${name.padEnd(19)} ${formatModeWorstCase(modes[mode], share)}`;
  });
  const count = `${policies.length} ${policies.length === 1 ? "policy" : "policies"}`;
  return `${count}; most nodes that policies can act on, by safety.mode:\n${lines.join("\n")}\n`;
}

function formatModeWorstCase(
  { automaticPolicies: acting, approvalPolicies: asking, nodesPerHour: nodesAnHour, nodesAtOnce }: ModeWorstCase,
  share: string,
): string {
  if (nodesAnHour.fleet === 0) return "none";
  const who = [
    ...(acting.length === 0 ? [] : [`automatically: ${acting.join(", ")}`]),
    ...(asking.length === 0 ? [] : [`after approval: ${asking.join(", ")}`]),
  ];
  const perDomain = (domain: "region" | "country") =>
    `of one ${domain} ${nodesAnHour[domain]}, ${nodesAtOnce[domain]} at once`;
  const fleet = `${nodesAnHour.fleet} per hour, ${nodesAtOnce.fleet} at once and at most ${share} of the fleet`;
  return `${fleet}; ${perDomain("region")}; ${perDomain("country")}; ${who.join("; ")}`;
}

/** In snake_case, as everything that scripts read. */
function worstCaseJson({ activeMode: inForce, modes }: WorstCase): object {
  const entries = MODES.map((mode): readonly [Mode, ModeWorstCaseJson] => {
    const { automaticPolicies: acting, approvalPolicies: asking, nodesPerHour: nodesAnHour, nodesAtOnce } = modes[mode];
    return [mode, { acting, asking, nodes_an_hour: nodesAnHour, nodes_at_once: nodesAtOnce }];
  });
  return { in_force: inForce, modes: Object.fromEntries(entries) };
}

interface ModeWorstCaseJson {
  readonly acting: readonly string[];
  readonly asking: readonly string[];
  readonly nodes_an_hour: MaxNodes;
  readonly nodes_at_once: MaxNodes;
}
