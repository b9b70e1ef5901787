// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are YAML, and hold its variables
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  configJsonSchema,
  configReference,
  scenarioJsonSchema,
  scenarioReference,
} from "../../../scripts/reference/config-reference.ts";
import type { JsonSchema } from "../../../scripts/reference/json-schema.ts";
import { configErrors } from "../../config/config-fixtures.ts";
import { validatorOf } from "../../config/json-schema-validator.ts";
import { remediation } from "../../config/remediation-sections.ts";

const rowOf = (reference: string, key: string): string | undefined =>
  reference.split("\n").find((line) => line.startsWith(`| \`${key}\` |`));

/** Paths of all keys of a JSON Schema, those of list items with `[]`. */
function pathsOf(schema: JsonSchema, path = ""): string[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([key, child]) => {
    const here = path === "" ? key : `${path}.${key}`;
    return [here, ...pathsOf(child as JsonSchema, here)];
  });
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => pathsOf(one as JsonSchema, path));
  const items = schema.items === undefined ? [] : pathsOf(schema.items as JsonSchema, `${path}[]`);
  return [...new Set([...own, ...choices, ...items])];
}

describe("the reference of the configuration", () => {
  const reference = configReference("log: { level: info }\n", "basic_auth_users: {}\n");

  test("has a row for every key that the JSON Schema has, below its section", () => {
    const keys = pathsOf(configJsonSchema()).filter((path) => path.includes("."));
    expect(keys.length).toBeGreaterThan(100);
    expect(keys.filter((key) => rowOf(reference, key) === undefined)).toEqual([]);
  });

  test.each([
    ["service.base_url", "URL | required | Base URL of the management service."],
    ["service.api_key_file", "file | – | File that contains the API key."],
    ["service.timeout", "duration, 100ms to 5m | `10s` | Timeout of one request"],
    ["limits.plan", "starter, business, enterprise; or mapping | `business` | Plan"],
    ["limits.plan.calls_per_month", "integer, 1 to 10000000000 | `null` | Maximum calls per month; null if unlimited."],
    ["limits.reserve", "percentage, 0% to 90% | `20%` | Share of every window"],
    ["limits.month.starts_on", "integer, 1 to 31 | `1` | Day of the month (UTC)"],
    ["collect.nodes.every", "duration, 1s to 7d | `1m` | Time from one start"],
    ["collect.hourly", "mapping | `{cron: 2 * * * *}` | Reads of hourly session statistics."],
    [
      "export.node_labels",
      "list of: name, country, region, version, ip_address | `[name, country, region, version]` |",
    ],
    ["web.listen", "host:port | `0.0.0.0:9713` | Address"],
    ["safety.mode", "dry_run, approve, enforce | `dry_run` | Upper limit"],
    [
      "safety.max_disrupted_per",
      "mapping | `{region: 1}` | Maximum number of nodes that the daemon's actions make unavailable at the same time",
    ],
    ["safety.protected", "CEL expression | – | Nodes on which no action"],
    ["policies", "list of at most 20: glob | `[]` | Globs of policy files"],
    ["web.operators", "list of at most 100: mapping | `[]` | Operators"],
    ["time_intervals[].times[].end_time", "HH:MM | required | End of the range"],
    ["prometheus.authorization.type", "string | `Bearer` | Type"],
    ["receivers[].alertmanager", "true | – | Sends notifications as alerts"],
  ])("shows type, range, default and meaning of %s", (key, row) => {
    expect(rowOf(reference, key)).toContain(`| \`${key}\` | ${row}`);
  });

  test("ends with the example", () => {
    expect(reference).toContain("## Example\n\n```yaml\nlog: { level: info }\n```\n");
  });
});

describe("the reference of scenarios", () => {
  const reference = scenarioReference("seed: 3\n");

  test("has every option of the JSON Schema, with its defaults", () => {
    const keys = pathsOf(scenarioJsonSchema()).filter((path) => /^(?:service|rates|keys\[\])\./.test(path));
    expect(keys.length).toBeGreaterThan(20);
    expect(keys.filter((key) => rowOf(reference, key) === undefined)).toEqual([]);
    expect(rowOf(reference, "seed")).toContain("| `1` |");
  });

  test("has every kind of fault with its keys", () => {
    type Alternative = { properties: { kind: { const: string } } };
    const faults = scenarioJsonSchema().properties?.faults as { items: { oneOf: Alternative[] } };
    const kinds = faults.items.oneOf.map(({ properties }) => properties.kind.const);
    expect(kinds).toContain("clock_skew");
    expect(kinds.filter((kind) => rowOf(reference, kind) === undefined)).toEqual([]);
    expect(rowOf(reference, "clock_skew")).toContain("`skew` (duration, may be negative): Offset");
    expect(rowOf(reference, "hang")).toMatch(/ \| {2}\|$/);
  });
});

const duration = fc.oneof(
  fc.integer({ min: 1, max: 59 }).map((seconds) => `${seconds}s`),
  fc.constant("1m30s"),
);
const schedule = fc.oneof(fc.record({ every: duration }), fc.record({ cron: fc.constant("5 4 * * 1-5") }));
const optional = <T extends object>(shape: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(shape, { requiredKeys: [] });
const limit = optional({ requests: fc.integer({ min: 1, max: 1_000 }), burst: fc.constant(2_000), window: duration });
const cap = fc.option(fc.integer({ min: 1, max: 10_000 }));

const validConfigs = fc.record(
  {
    service: fc.record(
      {
        base_url: fc.webUrl({ validSchemes: ["http", "https"] }).filter((url) => !/\/v1\/*$/.test(url)),
        api_key_file: fc.constant("key"),
        timeout: duration,
        usage_scale: fc.constantFrom("ratio", "percent"),
        page_limit: fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.constant("${LIMIT}")),
        ca_file: fc.constant("ca.pem"),
        tls_config: fc.constantFrom({}, { server_name: "s" }, { cert_file: "f", key_file: "f" }),
        proxy: fc.constant("http://proxy:3128"),
        proxy_from_environment: fc.constant(false),
      },
      { requiredKeys: ["base_url", "api_key_file"] },
    ),
    limits: optional({
      plan: fc.oneof(
        fc.constantFrom("starter", "business", "enterprise"),
        optional({ requests_per_minute: cap, concurrent_requests: cap, calls_per_month: cap }),
      ),
      reserve: fc.integer({ min: 0, max: 90 }).map((percent) => `${percent}%`),
      month: optional({ starts_on: fc.integer({ min: 1, max: 31 }), used: fc.nat() }),
      node_management: limit,
      session_monitoring: limit,
    }),
    collect: optional({
      nodes: schedule,
      details: optional({ max_age: duration }),
      sessions: schedule,
      stats: schedule,
      hourly: schedule,
    }),
    export: optional({
      top_customers: fc.nat(1_000),
      node_labels: fc.subarray(["name", "country", "region", "version", "ip_address"]),
      deny: fc.subarray(["proxynet_nodes", "proxynet_node_info"]),
      series_max: fc.integer({ min: 1_000, max: 5_000_000 }),
    }),
    web: optional({ listen: fc.constantFrom("0.0.0.0:9713", ":80", "[::1]:0", "localhost:65535", "${HOST}:80") }),
    state: fc.constantFrom({ path: "/var/lib/x" }, { path: "state" }, { postgres: { url_file: "url", lease: "30s" } }),
    log: optional({
      level: fc.constantFrom("debug", "info", "warn", "error"),
      format: fc.constantFrom("json", "pretty"),
    }),
    policies: fc.subarray(["policies/*.yaml", "/etc/more/*.yml"]),
    ...remediation,
  },
  { requiredKeys: ["service"] },
);

describe("the JSON Schema", () => {
  const validator = validatorOf(configJsonSchema());

  test("accepts every configuration that the loader accepts", async () => {
    const validate = await validator;
    await fc.assert(
      fc.asyncProperty(validConfigs, async (value) => {
        expect(configErrors(JSON.stringify(value), { LIMIT: "500", HOST: "h" })).toEqual([]);
        expect(await validate(value)).toBeNull();
      }),
    );
  });

  const service = { base_url: "https://h", api_key_file: "key" };
  test.each([
    [{}],
    [{ service: { base_url: "https://h" } }],
    [{ service: { ...service, api_key: "k" } }],
    [{ service: { ...service, base_url: "ftp://h" } }],
    [{ service: { ...service, page_limit: 0 } }],
    [{ service: { ...service, timeout: "1 minute" } }],
    [{ service: { ...service, timeot: "1m" } }],
    [{ service, limits: { reserve: "20" } }],
    [{ service, limits: { plan: "busines" } }],
    [{ service, limits: { plan: { calls: 5 } } }],
    [{ service, collect: { nodes: {} } }],
    [{ service, collect: { nodes: { every: "1m", cron: "* * * * *" } } }],
    [{ service, export: { node_labels: ["ip"] } }],
    [{ service, web: { listen: 9713 } }],
    [{ service, log: { level: "inf" } }],
    [{ service, web: { web_config_file: "" } }],
    [{ service, policies: "a.yaml" }],
    [{ service, policies: [""] }],
    [{ service, safety: { mode: "on" } }],
    [{ service, safety: { max_disrupted_per: {} } }],
    [{ service, safety: { max_actions: { amount: 6, within: "1h" } } }],
    [{ service, safety: { max_unhealthy: { percent: "101" } } }],
    [{ service, safety: { protected: " " } }],
    [{ service, time_intervals: [{ name: "n", times: [{ start_time: "8:00", end_time: "9:00" }] }] }],
    [{ service, prometheus: {} }],
    [{ service, prometheus: { url: "http://h", basic_auth: { username: "u" } } }],
    [{ service, receivers: [{ name: "n" }] }],
    [{ service, receivers: [{ name: "n", webhook_url: "http://h", webhook_url_file: "f" }] }],
  ])("rejects what the loader rejects: %j", async (value) => {
    const validate = await validator;
    expect(configErrors(JSON.stringify(value))).not.toEqual([]);
    expect(await validate(value)).not.toBeNull();
  });
});
