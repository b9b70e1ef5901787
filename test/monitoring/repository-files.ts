import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

/** A file of the repository. */
export const inRepository = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Its text. */
export const textOf = (path: string): string => readFileSync(inRepository(path), "utf8");

/** Local locations of the addresses in the shipped files. */
export interface Addresses {
  readonly proxywarden: string;
  readonly prometheus: string;
  readonly alertmanager: string;
}

interface StaticTargets {
  static_configs: { targets: string[] }[];
}

interface PrometheusConfig {
  global: object;
  rule_files: string[];
  alerting: { alertmanagers: StaticTargets[] };
  scrape_configs: (StaticTargets & {
    job_name: string;
    scheme?: string;
    tls_config?: object;
    dns_sd_configs?: object;
  })[];
}

/**
 * Shipped rules that are evaluated every second, and whose alerts fire a second after one that is due a minute after.
 */
export const fastRules = (text: string): string =>
  text.replaceAll(/^ +interval: .*\n/gm, "").replaceAll("for: 1m\n", "for: 1s\n");

/**
 * The shipped configuration of Prometheus, but for the addresses, the files of rules, TLS, and its intervals: it
 * scrapes and evaluates every second.
 */
export function fastPrometheus(
  { proxywarden, prometheus, alertmanager }: Addresses,
  ruleFiles: readonly string[],
): string {
  const config = parse(textOf("config/prometheus/prometheus.yml")) as PrometheusConfig;
  config.global = { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" };
  config.rule_files = [...ruleFiles];
  const here: Readonly<Record<string, string>> = {
    "proxywarden:9713": proxywarden,
    "localhost:9090": prometheus,
    "alertmanager:9093": alertmanager,
  };
  const ours = config.scrape_configs.find(({ job_name }) => job_name === "proxywarden")!;
  Object.assign(ours, { scheme: "https", tls_config: { insecure_skip_verify: true }, dns_sd_configs: undefined });
  for (const { static_configs } of [...config.scrape_configs, ...config.alerting.alertmanagers]) {
    for (const config of static_configs) config.targets = config.targets.map((target) => here[target]!);
  }
  return JSON.stringify(config, null, 2);
}
