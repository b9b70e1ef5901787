import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fail, ok, type Result } from "../../../src/base/result.ts";
import { CONFIG_CHECKS } from "../../../src/cli/config/config-loading.ts";
import type { ConfigSource } from "../../../src/config/checks.ts";
import { type ConfigProblem, formatProblem } from "../../../src/config/diagnostics/problem.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { loadPolicyTests } from "../../../src/config/policy-test-file.ts";
import { loadScenario } from "../../../src/config/schema/scenario.ts";
import { fileText } from "../../config/config-fixtures.ts";
import { mutatedText, pick, randomBytes } from "../mutation.ts";
import { assert, type FuzzTarget } from "../target.ts";

type FileKind = "config" | "policies" | "web" | "scenario" | "policy_test";

interface Input {
  readonly kind: FileKind;
  readonly text: string;
}

const yamlIn = (folder: string): string[] =>
  readdirSync(new URL(`../../../${folder}`, import.meta.url))
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => fileText(join(folder, name)));

/** Removes comments: most mutations would hit one. */
const bare = (text: string): string => text.replace(/(?:^|(?<=\s))#.*$/gm, "").replace(/\n\s*\n/g, "\n");

/** A configuration with the sections that the example omits. */
const FULL_CONFIG = `
service:
  base_url: https://proxy.example.net/api
  api_key_file: key
  usage_scale: percent
  timeout: 10s
  tls_config: { ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem, server_name: x.example.net }
limits:
  plan: business
  reserve: 20%
  month: { calls: 1_000_000, starts_on: 1, used: 5 }
  node_management: { requests: 100, burst: 200, window: 1m }
collect:
  nodes: { every: 1m }
  details: { max_age: 15m }
  sessions: { cron: "*/5 * * * *" }
  stats: { every: 5m }
  hourly: { cron: "2 * * * *" }
export: { node_labels: [name, region], top_customers: 20, deny: [proxynet_node_info], series_max: 1000 }
web: { listen: "[::1]:9713", web_config_file: web.yml, operators: [{ name: alice, token_file: t }], trusted_proxies: [10.0.0.0/8] }
state: { path: state }
log: { level: info, format: json }
policies: [a.yaml]
safety:
  mode: enforce
  trust: { min_inventory: 80%, max_missing: 2%, max_unknown: 10%, max_freshest_last_seen: 5m, warmup_walks: 2 }
  max_disrupted: { percent: 5%, amount: 5 }
  max_disrupted_per: { region: 1 }
  breaker: { percent: 5%, amount: 10, within: 1h }
  correlated: { by: region, nodes: 5, percent: 50%, within: 5m }
  protected: 'node.name.startsWith("vip-")'
  efficacy: { window: 10, min_success: 50% }
time_intervals:
  - { name: nights, times: [{ start_time: "23:00", end_time: "24:00" }], weekdays: ["monday:friday"], location: Europe/Paris }
  - { name: old, time_intervals: [{ days_of_month: ["1:5", "-3:-1"], months: ["january:march"], years: ["2026:2030"] }] }
prometheus: { url: http://prometheus:9090, basic_auth: { username: u, password_file: p } }
alertmanager: { url: http://alertmanager:9093, authorization: { type: Bearer, credentials_file: c } }
receivers: [{ name: oncall, webhook_url_file: h }, { name: alerts, alertmanager: true }]
`;

const FULL_POLICY = `
policies:
  - name: reboot-offline
    mode: enforce
    match: node.country in ["DE", "FR"]
    when: node.status == "offline" && now - node.last_seen > duration("10m")
    for: 15m
    clear_for: 10m
    max_age: 5m
    steps:
      - {action: disconnect, verify: {within: 3m}}
      - {action: reboot, force: true, verify: {within: 15m, expect: node.uptime_hours < 1}}
      - {action: quarantine, duration: 24h, reason: "{{policy}}: {{when}} ({{episode}})"}
      - {action: notify, receiver: oncall}
    retry: {episodes: 2, every: 6h, forget_after: 24h}
    windows: [nights]
    blocked_by:
      - {query: 'ALERTS{alertname="Upstream",alertstate="firing"}'}
      - {alerts: ['severity="critical"', 'x=~"a|b"']}
`;

const seeds: Readonly<Record<FileKind, readonly string[]>> = {
  config: [FULL_CONFIG, bare(fileText("config/proxywarden.yaml"))],
  policies: [FULL_POLICY, ...yamlIn("config/policies").map(bare)],
  web: [bare(fileText("config/web.yml"))],
  scenario: [bare(fileText("config/scenarios/rough-day.yaml"))],
  policy_test: yamlIn("config/policies/tests").map(bare),
};

const words = [
  ...[":", ": ", "- ", "[", "]", "{", "}", "&a ", "*a", "<<: *a", "!!str ", "!x ", "|\n", ">-\n", "'", '"', "#", "\t"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: variables of the files
  ...["${", "${X}", "${HOME}", "$${", "---\n", "...\n", "~", "0x1", ".inf", ".nan", "-.inf", "? ", "\0", "\ud800", "%"],
  ...["\r", "\u2028", "\ufeff", "1e400", "-1", "0", "0s", "1y", "100%", "-5%", "1m1m", "99999999999d", "null", "true"],
  ...["__proto__: 1\n", "constructor", "\n  ", "\n", "&a [*a, *a]", "* * * * *", "*/0 * * * *", "0 0 30 2 *", "::1"],
  ...[
    "http://",
    "https://u:p@h",
    "(".repeat(40),
    "[".repeat(40),
    "{ length: { a: 1 } }",
    "x".repeat(300),
    "Europe/Pariss",
    "24:00",
    "31:1",
  ],
];

const env = { PROXYWARDEN_API_KEY: "sesame", X: "1" };
const PROBLEMS_MAX = 60;
const PROBLEM_CHARACTERS_MAX = 2_000;

/** Texts of every kind of file, read by the loaders. */
export const createTarget = (): FuzzTarget<Input> => ({
  generate(random) {
    const kind = pick(random, Object.keys(seeds) as FileKind[]);
    const seed = pick(random, seeds[kind]);
    return { kind, text: random() < 0.03 ? randomBytes(random, 300) : mutatedText(random, seed, words) };
  },
  run({ kind, text }) {
    const loaded = load(kind, text);
    if (loaded.ok) return;
    assert(loaded.error.length > 0, "the file is rejected without a problem");
    assert(loaded.error.length <= PROBLEMS_MAX, `the file has ${loaded.error.length} problems`);
    for (const problem of loaded.error) {
      assert(problem.line >= 1 && problem.column >= 1, "a problem has no position");
      const text = formatProblem(problem);
      assert(text.length <= PROBLEM_CHARACTERS_MAX, `a problem has ${text.length} characters`);
      assert(!/\[object|\bundefined\b|Invalid input/.test(text), `a problem has the text ${text}`);
    }
  },
});

function load(kind: FileKind, text: string): Result<unknown, readonly ConfigProblem[]> {
  switch (kind) {
    case "config":
      return loadAll(text, { "a.yaml": FULL_POLICY, "web.yml": "{}" });
    case "policies":
      return loadAll(FULL_CONFIG, { "a.yaml": text, "web.yml": "{}" });
    case "web":
      return loadAll(FULL_CONFIG, { "a.yaml": FULL_POLICY, "web.yml": text });
    case "scenario":
      return loadScenario({ file: "f.yaml", text, env });
    case "policy_test":
      return loadPolicyTests(sourceOf(text, { "../offline.yaml": FULL_POLICY }));
    default:
      return kind satisfies never;
  }
}

function loadAll(text: string, files: Readonly<Record<string, string>>): ReturnType<typeof loadConfig> {
  return loadConfig(sourceOf(text, files));
}

const sourceOf = (text: string, files: Readonly<Record<string, string>>): ConfigSource => ({
  file: "f.yaml",
  text,
  env,
  checks: CONFIG_CHECKS,
  readFile(path) {
    if (!/\.ya?ml$/.test(path)) return ok("sesame");
    return files[path] === undefined ? fail(`there is no ${path}`) : ok(files[path]);
  },
  listFiles: (glob) => Object.keys(files).filter((path) => path === glob || glob === "*.yaml"),
  globProblem: () => null,
  now: 0,
});
