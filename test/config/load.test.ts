import { describe, expect, test } from "vitest";
import { formatProblem } from "../../src/config/diagnostics/problem.ts";
import { loadConfig } from "../../src/config/load.ts";
import {
  configErrors,
  configProblems,
  configWarnings,
  loadConfigText,
  sourceOf,
  withService,
} from "./config-fixtures.ts";

test("a service and a key are enough: all other keys have their defaults", () => {
  const text = "service:\n  base_url: https://proxy.example.net/\n  api_key_file: /run/secrets/api_key\n";
  const { safety: _, ...rest } = loadConfigText(text);
  expect(rest).toEqual({
    service: {
      base_url: "https://proxy.example.net",
      api_key_file: "/run/secrets/api_key",
      timeout: 10_000,
      page_limit: 1_000,
      proxy_from_environment: false,
    },
    limits: {
      plan: "business",
      reserve: 0.2,
      month: { starts_on: 1, used: 0 },
      node_management: { requests: 100, burst: 200, windowMs: 60_000 },
      session_monitoring: { requests: 500, burst: 1_000, windowMs: 60_000 },
    },
    collect: {
      nodes: { kind: "every", intervalMs: 60_000 },
      details: { max_age: 900_000 },
      sessions: { kind: "every", intervalMs: 60_000 },
      stats: { kind: "every", intervalMs: 60_000 },
      hourly: { kind: "cron", expression: "2 * * * *" },
    },
    export: {
      topCustomers: 20,
      nodeLabels: ["name", "country", "region", "version"],
      deny: new Set(),
      seriesMax: 2_000_000,
    },
    web: { links: {}, listen: { host: "0.0.0.0", port: 9713 }, operators: [], trusted_proxies: [] },
    state: { path: "/var/lib/proxywarden" },
    log: { level: "info", format: "json" },
    policies: [],
    time_intervals: [],
    receivers: [],
  });
});

test.each([
  [
    "collect: { nodes: { evry: 10s } }",
    [
      "2:12: collect.nodes: found the key evry; must have either every or cron",
      '2:21: collect.nodes.evry: unknown key; did you mean "every"?',
    ],
  ],
  [
    "receivers: [{ nam: oncall, log: true }]",
    ["2:13: receivers[0].name: missing; must be a name", '2:15: receivers[0].nam: unknown key; did you mean "name"?'],
  ],
])("a required key that is misspelled is also missing: %s", (section, errors) => {
  expect(configErrors(withService(section))).toEqual(errors);
});

test("three errors on three lines are reported at once, each with its line and column", () => {
  const text = [
    "service:",
    "  base_url: https://proxy.example.net",
    "  api_key_file: key",
    "  timeot: 5s",
    "limits:",
    "  reserve: 95%",
    "collect:",
    "  nodes: { every: 1 minute }",
  ].join("\n");
  expect(configProblems(text).map(({ line, column, path }) => [line, column, path])).toEqual([
    [4, 3, "service.timeot"],
    [6, 12, "limits.reserve"],
    [8, 19, "collect.nodes.every"],
  ]);
  expect(configErrors(text)).toEqual([
    '4:3: service.timeot: unknown key; did you mean "timeout"?',
    '6:12: limits.reserve: found "95%"; must be a percentage from 0% to 90%, such as 20%',
    '8:19: collect.nodes.every: found "1 minute"; a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d',
  ]);
});

test("a problem has separate fields for the found and the expected value", () => {
  expect(configProblems(withService("log: { level: inf }"))).toEqual([
    {
      file: "p.yaml",
      line: 2,
      column: 15,
      path: "log.level",
      found: '"inf"',
      expected: "must be one of debug, info, warn, error",
      message: 'found "inf"; must be one of debug, info, warn, error',
      suggestion: "info",
    },
  ]);
});

describe("an invalid value is reported with the expected one:", () => {
  test.each([
    ["log: pretty", '2:6: log: found "pretty"; must be a mapping (keys: level, format)'],
    ["log:", "2:5: log: found nothing; must be a mapping (keys: level, format); it may be left out"],
    ["export: { top_customers: 1.5 }", "2:26: export.top_customers: found 1.5; must be a whole number from 0 to 1000"],
    [
      "export: { top_customers: many }",
      '2:26: export.top_customers: found "many"; must be a whole number from 0 to 1000',
    ],
    ["export: { series_max: 10 }", "2:23: export.series_max: found 10; must be a whole number from 1000 to 100000000"],
    [
      "export: { node_labels: name }",
      '2:24: export.node_labels: found "name"; must be a list of labels from name, country, region, version, ip_address, at most 5',
    ],
    [
      "export: { node_labels: [name, ip] }",
      '2:31: export.node_labels[1]: found "ip"; must be one of name, country, region, version, ip_address',
    ],
    ["export: { node_labels: [name, name] }", "2:24: export.node_labels: found a list; must not name a label twice"],
    [
      "export: { deny: [proxynet_node] }",
      '2:18: export.deny[0]: found "proxynet_node"; must be the name of a metric family that begins with proxynet_; did you mean "proxynet_nodes"?',
    ],
    [
      "limits: { plan: busines }",
      '2:17: limits.plan: found "busines"; must be starter, business, enterprise, or a mapping (keys: requests_per_minute, concurrent_requests, calls_per_month); did you mean "business"?',
    ],
    [
      "limits: { plan: { calls_per_month: 0 } }",
      "2:36: limits.plan.calls_per_month: found 0; must be a whole number from 1 to 10000000000",
    ],
    ["limits: { plan: { calls: 5 } }", '2:19: limits.plan.calls: unknown key; did you mean "calls_per_month"?'],
    ["max_in_flight: 2", '2:1: max_in_flight: unknown key; did you mean "safety.max_in_flight"?'],
    ["web: { listen_address: 0.0.0.0:1 }", '2:8: web.listen_address: unknown key; did you mean "listen"?'],
    [
      "limits: { node_management: { burst: 99 } }",
      "2:37: limits.node_management.burst: found 99; must be at least requests, which is 100",
    ],
    [
      "limits: { month: { starts_on: 32 } }",
      "2:31: limits.month.starts_on: found 32; must be a whole number from 1 to 31",
    ],
    [
      "collect: { nodes: { every: 999ms } }",
      '2:28: collect.nodes.every: found "999ms"; must be a duration from 1s to 7d',
    ],
    [
      "collect: { nodes: { every: 60 } }",
      "2:28: collect.nodes.every: found 60; a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d",
    ],
    ["collect: { nodes: {} }", "2:12: collect.nodes: found no keys; must have either every or cron"],
    [
      'collect: { nodes: { every: 1m, cron: "* * * * *" } }',
      "2:12: collect.nodes: found the keys every, cron; must have either every or cron",
    ],
    [
      'collect: { nodes: { cron: "* *" } }',
      '2:27: collect.nodes.cron: found "* *"; must be a cron expression of five or six fields: it has another number of fields',
    ],
    [
      "web: { listen: 9713 }",
      "2:16: web.listen: found 9713; must be a host and a port from 0 to 65535, such as 0.0.0.0:9713, [::]:9713 or :9713",
    ],
    [
      "web: { listen: localhost:65536 }",
      '2:16: web.listen: found "localhost:65536"; must be a host and a port from 0 to 65535, such as 0.0.0.0:9713, [::]:9713 or :9713',
    ],
    [
      "__proto__: { log: 1 }",
      "2:1: __proto__: unknown key; must be one of service, limits, collect, export, web, state, log, policies, safety, time_intervals, prometheus, alertmanager, receivers",
    ],
  ])("%s", (text, expected) => {
    expect(configErrors(withService(text))).toEqual([expected]);
  });
});

describe("the service's own keys are checked:", () => {
  const url = "must be an http or https URL, such as https://proxy.example.net";
  test.each([
    ["base_url: proxy.example.net", `3:13: service.base_url: found "proxy.example.net"; ${url}`],
    ["base_url: ftp://proxy.example.net", `3:13: service.base_url: found "ftp://proxy.example.net"; ${url}`],
    [
      "base_url: https://proxy.example.net/v1/",
      '3:13: service.base_url: found "https://proxy.example.net/v1/"; must be a URL without /v1 at its end, which is appended to every request',
    ],
    [
      "base_url: https://me:secret@proxy.example.net",
      '3:13: service.base_url: found "https://***@proxy.example.net"; must be a URL without credentials; set api_key_file instead',
    ],
    [
      "base_url: https://proxy.example.net?a=1",
      '3:13: service.base_url: found "https://proxy.example.net?a=1"; must be a URL without a query or fragment',
    ],
    ["timeout: 10s", `1:1: service.base_url: missing; ${url}`],
  ])("%s", (line, expected) => {
    expect(configErrors(`service:\n  api_key_file: key\n  ${line}\n`)).toEqual([expected]);
  });

  test("exactly one API key is required", () => {
    expect(configErrors("service: { base_url: 'https://h' }")).toEqual([
      "1:1: service: found the key base_url; must have either api_key or api_key_file",
    ]);
    expect(configErrors("service: { base_url: 'https://h', api_key: a, api_key_file: b }")).toEqual([
      "1:1: service: found the keys api_key, api_key_file; must have either api_key or api_key_file",
    ]);
  });

  test("and an empty one from the environment is named", () => {
    const errors = configErrors(`service: { base_url: "https://h", api_key: "\${EMPTY}" }`, { EMPTY: "" });
    expect(errors).toEqual([
      expect.stringMatching(/^1:44: service\.api_key: found "" from \$\{EMPTY\}; must be an API key/),
    ]);
  });

  test("even if another key of the section is invalid", () => {
    expect(configErrors("service:\n  base_url: h\n").map((error) => error.split(":").slice(0, 3).join(":"))).toEqual([
      "1:1: service",
      "2:13: service.base_url",
    ]);
  });

  test("and the whole section is needed", () => {
    expect(configErrors("log: { level: info }")).toEqual([
      "1:1: service: missing; must be a mapping (keys: base_url, api_key, api_key_file, timeout, usage_scale, page_limit, ca_file, tls_config, proxy, proxy_from_environment)",
    ]);
  });

  test.each(["api_key: sesame open", "api_key: [sesame]", "api_key: 12345", "api_key: sesame\n  api_key: 12345"])(
    "and no message shows a key: %j",
    (key) => {
      const shown = configErrors(`service:\n  base_url: "https://h"\n  ${key}\n`).join("\n");
      expect(shown).toMatch(/service\.api_key/);
      expect(shown).not.toMatch(/sesame|12345/);
    },
  );
});

test("the default burst is twice the requests", () => {
  const { limits } = loadConfigText(
    withService("limits: { node_management: { requests: 30 }, session_monitoring: { burst: 600 } }"),
  );
  expect(limits.node_management).toEqual({ requests: 30, burst: 60, windowMs: 60_000 });
  expect(limits.session_monitoring).toEqual({ requests: 500, burst: 600, windowMs: 60_000 });
});

test("a plan may be given by its caps; absent and null mean no cap", () => {
  const { limits } = loadConfigText(withService("limits: { plan: { requests_per_minute: 2000, calls_per_month: ~ } }"));
  expect(limits.plan).toEqual({ requestsPerMinute: 2_000, concurrentRequests: null, callsPerMonth: null });
});

test.each([
  ["0.0.0.0:9713", "0.0.0.0", 9713],
  ['":9713"', "", 9713],
  ["localhost:0", "localhost", 0],
  ['"[::1]:80"', "::1", 80],
])("%s is an address to listen on", (text, host, port) => {
  expect(loadConfigText(withService(`web: { listen: ${text} }`)).web.listen).toEqual({ host, port });
});

test("relative paths are relative to the folder of the file", () => {
  const text =
    "service: { base_url: 'https://h', api_key_file: key, ca_file: tls/ca.pem }\nstate: { path: ../state }\n";
  const loaded = loadConfig({ ...sourceOf(text), file: "/etc/proxywarden/config.yaml" });
  expect(loaded.ok && [loaded.value.config.service, loaded.value.config.state]).toMatchObject([
    { api_key_file: "/etc/proxywarden/key", ca_file: "/etc/proxywarden/tls/ca.pem" },
    { path: "/etc/state" },
  ]);
});

test("files that the configuration names must exist and not be empty", () => {
  const text = "service:\n  base_url: 'https://h'\n  api_key_file: empty\n  ca_file: gone.pem\n";
  const readFile = (path: string) =>
    path === "conf/empty"
      ? ({ ok: true, value: "\n" } as const)
      : ({ ok: false, error: `${path} does not exist` } as const);
  const loaded = loadConfig({ ...sourceOf(text), file: "conf/p.yaml", readFile });
  expect(loaded.ok ? [] : loaded.error.map(formatProblem)).toEqual([
    'conf/p.yaml:3:17: service.api_key_file: found "empty"; must be a file that is not empty',
    'conf/p.yaml:4:12: service.ca_file: found "gone.pem"; must be a file that can be read: conf/gone.pem does not exist',
  ]);
});

test("warns only of an unset usage scale and a key in plain text", () => {
  const service = "service:\n  base_url: 'https://h'\n  api_key: ";
  expect(configWarnings(`${service}sesame\n`)).toEqual([
    "1:1: service.usage_scale: not set: CPU, memory and disk usage are not exported, and unknown in policies; check --probe shows which it is",
    "3:12: service.api_key: the API key is written in plain text; take it from the environment, or name its file as api_key_file",
  ]);
  expect(configWarnings(`${service}\${KEY}\n  usage_scale: percent\n`, { KEY: "sesame" })).toEqual([]);
});
