import { createIntegrationClient, type IntegrationAccess, userAgentOf } from "../../api-client/integration-client.ts";
import { DAY_MS, type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import { quote } from "../../config/diagnostics/problem.ts";
import { definedNames, type LoadedConfig } from "../../config/load.ts";
import type { PolicySpec } from "../../config/schema/policy.ts";
import type { EpochMs } from "../../model/time.ts";
import { systemClock } from "../../platform/clock.ts";
import type { RemediationConfig } from "../../remediation/context.ts";
import { runBacktest } from "../backtest/backtest.ts";
import { readConfig, readPolicies } from "../config/config-loading.ts";
import {
  type CommandContext,
  CommandFailure,
  EXIT_USAGE,
  type OutputOption,
  orFail,
  orStopped,
  print,
} from "../context.ts";
import { accessWithSecrets, readServerAccess } from "../daemon-client.ts";
import { backtestReport, formatBacktest } from "../output/backtest-report.ts";
import { showShare } from "../output/progress.ts";

interface BacktestOptions extends OutputOption {
  readonly config: string;
  /** URL of Prometheus. Absent means `prometheus.url` of the configuration. */
  readonly prometheus?: string;
  readonly httpConfigFile?: string;
  /** Absent means 30 days before `until`. */
  readonly since?: EpochMs;
  /** Absent means now. */
  readonly until?: EpochMs;
  /** Absent means that it is chosen by the size of the history. */
  readonly step?: DurationMs;
  /** Files of policies to compare with those of the configuration. */
  readonly policies?: readonly string[];
  readonly matchers: string;
}

const SINCE_DEFAULT_MS: DurationMs = 30 * DAY_MS;
/** Maximum size of a response. A point of 100,000 nodes with all their labels takes about 25 MB. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Timeout of a query, which is the default of Prometheus. */
const QUERY_TIMEOUT_MS: DurationMs = 2 * MINUTE_MS;

/** `policy backtest`: replays the history in Prometheus against policies. */
export async function runPolicyBacktest(options: BacktestOptions, context: CommandContext): Promise<void> {
  if (options.httpConfigFile !== undefined && options.prometheus === undefined) {
    throw new CommandFailure(
      "--http-config-file needs --prometheus; the credentials for prometheus.url are in the configuration",
      EXIT_USAGE,
    );
  }
  const used = options.prometheus === undefined ? (["prometheus"] as const) : [];
  const loaded = orFail(readConfig(options.config, context.env, used));
  const access = prometheusAccess(options, loaded, context);
  const configs = await configsToReplay(options.policies ?? [], loaded, context);
  const untilMs = options.until ?? systemClock.now();
  const fromMs = options.since ?? untilMs - SINCE_DEFAULT_MS;
  if (fromMs >= untilMs) throw new CommandFailure("--since must be before --until", EXIT_USAGE);
  const agent = userAgentOf(context.version);
  const prometheus = createIntegrationClient({
    access,
    clock: systemClock,
    agent,
    timeoutMs: QUERY_TIMEOUT_MS,
    bodyBytesMax: BODY_BYTES_MAX,
  });
  const progress = showShare("replaying the history", context);
  const { matchers, step: stepMs = null } = options;
  const request = { ...configs, prometheus, matchers, fromMs, untilMs, stepMs, signal: context.stop };
  const result = await orStopped(runBacktest(request, progress.show), context.stop).finally(() => {
    progress.end();
    return prometheus.close();
  });
  if (!result.ok) throw new CommandFailure(`${serverText(options, loaded)}: ${result.error}`);
  print(context, options, backtestReport(result.value), formatBacktest);
}

/**
 * Returns how to reach Prometheus. With `--prometheus`, the credentials in the configuration are not used, because they are
 * for the server in the configuration.
 */
function prometheusAccess(
  { prometheus: url, httpConfigFile, config: file }: BacktestOptions,
  { config, keys }: LoadedConfig,
  { env }: CommandContext,
): IntegrationAccess {
  if (url !== undefined) {
    return readServerAccess({ url, ...(httpConfigFile === undefined ? {} : { httpConfigFile }) }, env);
  }
  if (config.prometheus === undefined) {
    throw new CommandFailure(
      `${file} has no prometheus.url: pass the URL of the server that has the history as --prometheus`,
    );
  }
  return accessWithSecrets(keys, "prometheus.", config.prometheus);
}

/** Returns the option or key with the URL of Prometheus, and the URL. */
const serverText = ({ prometheus: url, config: file }: BacktestOptions, { config }: LoadedConfig): string =>
  url === undefined ? `prometheus.url ${quote(config.prometheus!.url)} of ${file}` : `--prometheus ${quote(url)}`;

/**
 * Returns the configuration in force, and one with the policies of `files`: each replaces the policy with its name, or
 * is added.
 */
async function configsToReplay(
  files: readonly string[],
  loaded: LoadedConfig,
  { env, stop }: CommandContext,
): Promise<{ readonly inForce: RemediationConfig; readonly candidate: RemediationConfig | null }> {
  const inForce: RemediationConfig = { ...loaded.config, policies: loaded.policies };
  const policies = new Map<string, PolicySpec>(inForce.policies.map((spec) => [spec.name, spec]));
  for (const file of files) {
    const read = orFail(await orStopped(readPolicies(file, env, definedNames(loaded.config)), stop));
    for (const spec of read) policies.set(spec.name, spec);
  }
  return { inForce, candidate: files.length === 0 ? null : { ...inForce, policies: [...policies.values()] } };
}
