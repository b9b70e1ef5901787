import { readdirSync } from "node:fs";
import { basename, dirname, join, matchesGlob } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { parseConfig, parsePolicyTests } from "../../src/cli/config/config-loading.ts";
import { formatProblem } from "../../src/config/diagnostics/problem.ts";
import type { LoadedConfig } from "../../src/config/load.ts";
import type { LoadedPolicyTests } from "../../src/config/policy-test-file.ts";
import type { WebConfig } from "../../src/config/schema/web-file.ts";
import { compilePolicy } from "../../src/policy/policy.ts";
import { orThrow } from "../harness/or-throw.ts";
import { fileText, loadConfigText, loadScenarioText, readWebText } from "./config-fixtures.ts";
import { validatorOf } from "./json-schema-validator.ts";

const TOKEN_FILE = fileURLToPath(import.meta.url);
const env = {
  PROXYWARDEN_API_KEY: "sesame",
  DEMO_SERVICE: "http://127.0.0.1:1",
  DEMO_KEY: "sesame",
  DEMO_PORT: "0",
  DEMO_ADMIN_TOKEN_FILE: TOKEN_FILE,
};

const files = readdirSync(new URL("../../config", import.meta.url), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath.replace(/^.*\/config(?=\/|$)/, "config").replace(/\/$/, "")}/${entry.name}`)
  // Prometheus' and Alertmanager's own tools check their files: test/monitoring.
  .filter((path) => !path.startsWith("config/prometheus/"));

/** Loads a configuration of the folder as the commands do, with its policies and the real CEL. */
function parseShipped(path: string): LoadedConfig {
  // The reader of the tutorial creates the token, so another file of the folder stands in for it.
  const text = fileText(path).replace("token_file: operator_token", "token_file: policies.yaml");
  return orThrow(parseConfig(absolute(path), text, env));
}

/** Loads the policy tests of a file as the command does. */
function policyTests(path: string): LoadedPolicyTests {
  return orThrow(parsePolicyTests(absolute(path), fileText(path), {}));
}

const absolute = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const configurations = files.filter((path) => basename(path) === "proxywarden.yaml");
const shippedConfig = () => parseShipped("config/proxywarden.yaml");

/** The web configuration of the folder. Its certificate and key are not in the folder, and are taken to be there. */
function webExample(): WebConfig {
  const read = orThrow(readWebText("config/web.yml", fileText("config/web.yml")));
  expect(read.warnings).toEqual([]);
  return read.config;
}

/** The schema that the first line of a file names for editors; without one, it is its name that tells. */
function schemaOf(path: string): object {
  const [, named] = /^# yaml-language-server: \$schema=(\S+)$/m.exec(fileText(path)) ?? [];
  const { pathname } = new URL(named ?? `../${basename(path, ".yaml")}.schema.json`, `file:///${path}`);
  return JSON.parse(fileText(pathname.slice(1)));
}

test.each(files)("%s is valid", async (path) => {
  if (path.endsWith(".schema.json")) {
    const schema = JSON.parse(fileText(path));
    expect(schema.$schema).toBe("http://json-schema.org/draft-07/schema#");
    expect(await validatorOf(schema)).toBeTypeOf("function");
    return;
  }
  const validate = await validatorOf(schemaOf(path));
  expect(await validate(parse(fileText(path)))).toBeNull();
  if (path.startsWith("config/scenarios/")) expect(loadScenarioText(fileText(path)).nodes).toBeGreaterThan(0);
  else if (path.startsWith("config/policies/tests/")) expect(policyTests(path).file.tests.length).toBeGreaterThan(0);
  else if (configurations.includes(path)) {
    // The service decides the usage scale, so the examples leave it unset.
    const warnings = parseShipped(path).warnings.map(formatProblem);
    expect(warnings.filter((warning) => !warning.includes("usage_scale"))).toEqual([]);
  } else if (path === "config/web.yml") expect(webExample().tls_server_config?.cert_file).toBe("config/web.crt");
  else
    expect(
      configurations
        .flatMap((one) => parseShipped(one).config.policies.map((glob) => join(dirname(one), glob)))
        .filter((glob) => matchesGlob(path, glob)),
    ).not.toEqual([]);
});

test("every policy compiles, and the examples are dry runs", () => {
  const policies = shippedConfig().policies;
  expect(policies.map(({ name }) => name)).toEqual([
    "heal-failing-sessions",
    "quarantine-flapping",
    "reboot-full-disk",
    "cool-hot-cpu",
    "reboot-offline",
    "report-stuck-reboot",
  ]);
  expect(policies.filter(({ mode }) => mode !== "dry_run")).toEqual([]);
  for (const spec of configurations.flatMap((path) => parseShipped(path).policies)) {
    expect(compilePolicy(spec).when.fields.length).toBeGreaterThan(0);
  }
});

test("nodes that are stuck in rebooting are only reported", () => {
  const stuck = shippedConfig().policies.find(({ when }) => when.includes('"rebooting"'));
  expect(stuck?.steps.map(({ action }) => action)).toEqual(["notify"]);
});

test("the example has the default values", () => {
  const example = shippedConfig().config;
  const { base_url, api_key } = example.service;
  const least = loadConfigText(`service: { base_url: "${base_url}", api_key: ${api_key} }`);
  const { policies, time_intervals, receivers } = example;
  expect(example).toEqual({ ...least, policies, time_intervals, receivers });
});

test("the commented keys of the example are valid", () => {
  const open = fileText("config/proxywarden.yaml").replace(
    /^( *)# (?=(?:usage_scale|ca_file|tls_config|proxy|web_config_file|operators|protected|prometheus|alertmanager|- \{ name): )/gm,
    "$1",
  );
  expect(open).toContain("\n  operators: [{ name: alice, token_file: /run/secrets/alice }]");
  const read = loadConfigText(open, env);
  expect(read.service.usage_scale).toBe("ratio");
  expect(read.prometheus?.url).toBe("http://prometheus:9090");
  expect(read.alertmanager?.url).toBe("http://alertmanager:9093");
  expect(read.safety.protected).toBe('node.name.startsWith("vip-")');
  expect(read.receivers).toHaveLength(2);
});

test("the folder holds the documented files", () => {
  const expected = [
    ...[
      "policies.schema.json",
      "proxywarden.schema.json",
      "proxywarden.yaml",
      "rough-day.yaml",
      "scenario.schema.json",
      "web.schema.json",
      "web.yml",
    ],
    ...[
      "failing-sessions.yaml",
      "flapping.yaml",
      "full-disk.yaml",
      "hot-cpu.yaml",
      "offline.yaml",
      "stuck-reboot.yaml",
    ],
  ];
  expect(files.map((path) => basename(path)).toSorted()).toEqual(expect.arrayContaining(expected));
});
