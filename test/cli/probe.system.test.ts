import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseConfig } from "../../src/cli/config/config-loading.ts";
import { findingsOf } from "../../src/cli/probe/findings.ts";
import { formatProbe } from "../../src/cli/probe/probe.ts";
import type { ServiceObservation } from "../../src/cli/probe/service-probe.ts";
import { SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { replyCounts } from "../../src/simulator/http/service.ts";
import { orThrow } from "../harness/or-throw.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { probe, startService } from "./probed-service.ts";
import { runInProcess } from "./terminal.ts";

test("announces its calls, prints what the service showed, and ends with the number of calls", async () => {
  const { network, file } = await startService({});
  const { code, out, err } = await runInProcess("check", "--config", file, "--probe");
  expect(code).toBe(0);
  expect(err).toContain(
    `asking ${network.url}, read-only and within the limits: pages of GET /v1/nodes, GET /v1/nodes/ID of 3 nodes, a page of GET /v1/sessions; at most 11 calls\n`,
  );
  const lines = out.trimEnd().split("\n");
  const probed = lines.slice(lines.findIndex((line) => line.startsWith("what ")));
  expect(probed.map((line) => line.slice(0, 15).trimEnd())).toEqual([
    ...[`what ${network.url}`.slice(0, 15), "  scopes", "  usage scale", "  page limit", "  first page"],
    ...["  limits", "  headers", "used 6 calls"],
  ]);
  expect(replyCounts(network.service).reduce((sum, { count }) => sum + count, 0)).toBe(6);
  expect(replyCounts(network.service).filter(({ endpoint }) => !endpoint.startsWith("GET "))).toEqual([]);
});

test("marks what makes it fail", () => {
  const findings = [
    { about: "first_page", value: 1, certain: true, text: "1: page 0 is empty" },
    { about: "headers", value: [], certain: true, text: "missing: date", problem: true },
  ];
  const text = formatProbe({ url: "https://proxy.test", calls: [], findings, nodes: null }, (_, shown) => shown);
  expect(text).toBe(
    "what https://proxy.test showed:\n  first page   1: page 0 is empty\n  headers      problem: missing: date\nused 0 calls\n",
  );
});

test("the limits are for the nodes that the service reports, and no hint recommends the probe that runs", async () => {
  const folder = createTempFolder();
  folder.write(
    "p.yaml",
    "policies: [{ name: p, when: node.status == 'offline', for: 15m, steps: [{ action: reboot }] }]",
  );
  const { file: started } = await startService({});
  const config = JSON.parse(readFileSync(started, "utf8")) as object;
  const file = folder.write("proxywarden.yaml", JSON.stringify({ ...config, policies: ["p.yaml"] }));
  const { out, err } = await runInProcess("check", "--config", file, "--probe");
  expect(out).toContain("limits for 260 nodes (as reported by the service)\n");
  expect(err).toContain("unknown in policies; see usage scale below\n");
  expect(out + err).not.toContain("--probe");
});

describe("usage scale", () => {
  test("percent is certain: a usage is no ratio", async () => {
    const { code, findings } = await probe({ options: { usageScale: "percent" } });
    expect(findings.usage_scale).toMatchObject({ value: "percent", certain: true, problem: false });
    expect(findings.usage_scale!.text).toMatch(/which is not a ratio; set service\.usage_scale: percent$/);
    expect(code).toBe(0);
  });

  test("percent contradicts a configured ratio, and check fails", async () => {
    const { code, findings } = await probe({ options: { usageScale: "percent" }, service: { usage_scale: "ratio" } });
    expect(findings.usage_scale).toMatchObject({ value: "percent", problem: true });
    expect(code).toBe(1);
  });

  test("ratio is only likely, and the text says why", async () => {
    const { findings } = await probe();
    expect(findings.usage_scale).toMatchObject({ value: "ratio", certain: false });
    expect(findings.usage_scale!.text).toBe(
      "ratio, most likely: no usage of the 3 nodes read is above 1, so ratio and percent can't be told apart for certain; as percent, none of them would use more than 1%; set service.usage_scale: ratio unless your nodes are that idle",
    );
  });

  test("can't be determined from an empty fleet", async () => {
    const { findings } = await probe({ scenario: { nodes: 0, sessions: 0 } });
    expect(findings.usage_scale).toMatchObject({ value: null, text: "can't be determined: no node could be read" });
    expect(findings.first_page).toMatchObject({ value: null, text: "can't be determined: the fleet has no nodes" });
  });
});

describe("scopes", () => {
  const withScopes = (...scopes: string[]) => ({ scenario: { keys: [{ key: SIMULATION_KEY, scopes }] } });

  test("the scopes to read are named, and that to write can't be determined", async () => {
    const { findings } = await probe(withScopes("nodes:read", "sessions:read"));
    expect(findings.scopes).toMatchObject({
      value: { "nodes:read": true, "sessions:read": true, "nodes:write": null },
      text: "nodes:read, sessions:read; nodes:write can't be determined without an action",
    });
  });

  test("a missing scope for sessions is named", async () => {
    const { code, findings } = await probe(withScopes("nodes:read"));
    expect(findings.scopes!.text).toMatch(/^nodes:read; sessions:read is missing \(403\)/);
    expect(code).toBe(0);
  });

  test("without nodes:read check fails after two calls", async () => {
    const { code, findings, calls } = await probe(withScopes("sessions:read"));
    expect(findings.scopes).toMatchObject({ problem: true });
    expect(findings.page_limit).toMatchObject({ value: null });
    expect(calls.map(({ status }) => status)).toEqual([403, 200]);
    expect(code).toBe(1);
  });

  test("a scope that can't be determined is not called missing", async () => {
    const fault = { fault: { kind: "status", status: 500 }, faultAt: "/v1/sessions" } as const;
    const { findings } = await probe({ ...withScopes("nodes:write"), ...fault });
    expect(findings.scopes!.text).toMatch(/^nodes:read is missing \(403\); sessions:read can't be determined: /);
  });

  test("a base URL with a wrong path is not taken for a key without scopes", async () => {
    const { code, findings } = await probe({ fault: { kind: "status", status: 404 } });
    expect(findings.scopes!.text).toMatch(
      /^nodes:read can't be determined: the service answered 404 to GET \/v1\/nodes; /,
    );
    expect(findings.scopes!.text).toContain("; check service.base_url; ");
    expect(code).toBe(1);
  });

  test.each([
    ["a web page", "html", /^nodes:read can't be determined: GET \/v1\/nodes: expected JSON, got text\/html/],
    ["other JSON", "wrong_shape", /^nodes:read can't be determined: GET \/v1\/nodes: this is not a page: /],
  ] as const)("a server that answers 200 with %s is not taken for the service", async (_, kind, text) => {
    const { code, findings } = await probe({ fault: { kind } });
    expect(findings.scopes).toMatchObject({ value: { "nodes:read": null, "sessions:read": null }, certain: false });
    expect(findings.scopes!.text).toMatch(text);
    expect(findings.scopes!.text).toContain("; check service.base_url; ");
    expect(findings.headers!.text).toBe("can't be determined: no call succeeded");
    expect(code).toBe(1);
  });

  test("a key that is not accepted costs one call, and check fails", async () => {
    const { code, findings, calls } = await probe({ service: { api_key: "guessed" } });
    expect(findings.scopes).toMatchObject({ problem: true, text: "401: the service does not accept the API key" });
    expect(calls).toHaveLength(1);
    expect(code).toBe(1);
  });

  test("a call that fails leaves what other calls proved", async () => {
    const { code, findings } = await probe({ fault: { kind: "reset" }, faultAt: "/v1/sessions" });
    expect(findings.scopes).toMatchObject({ value: { "nodes:read": true, "sessions:read": null }, certain: false });
    expect(findings.scopes!.text).toMatch(
      /^nodes:read; sessions:read can't be determined: GET \/v1\/sessions: .*; nodes:write/,
    );
    expect(code).toBe(0);
  });

  test("a service that can't be reached costs one call, and check fails", async () => {
    const { code, findings, calls } = await probe({ service: { base_url: "http://127.0.0.1:1" } });
    expect(findings.scopes!.text).toMatch(/ECONNREFUSED/);
    expect(calls).toHaveLength(1);
    expect(code).toBe(1);
  });
});

describe("limits and headers", () => {
  test("errors of a gateway without headers don't hide those of the service", async () => {
    const { findings } = await probe({ fault: { kind: "status", status: 502, bare: true }, faultAt: "/v1/sessions" });
    expect(findings.headers!.text).toBe("x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, date");
  });

  test("the stated limits are compared with the configured ones", async () => {
    const { findings } = await probe();
    expect(findings.limits!.text).toMatch(
      /^node_management 100 \(limits\.node_management\.requests is 60000\), \d+ left; session_monitoring 500 \(as configured\), \d+ left; burst, /,
    );
    expect(findings.headers).toMatchObject({
      value: ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "date"],
    });
  });

  test("a service without these headers is described with the consequences", async () => {
    const { findings } = await probe({ options: { rateLimitHeaders: "off" } });
    expect(findings.limits).toMatchObject({
      value: null,
      certain: false,
      text: "no response states any limit: limits must match your contract",
    });
    expect(findings.headers!.text).toBe(
      "date; missing: x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset; without X-RateLimit-Limit and X-RateLimit-Remaining, calls are spaced evenly",
    );
  });

  test.each([
    [
      { date: "Sun, 01 Mar 2026 00:00:00 GMT" },
      false,
      "x-ratelimit-limit, x-ratelimit-remaining, date; missing: x-ratelimit-reset",
    ],
    [
      { "x-ratelimit-reset": "60" },
      true,
      "x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset; missing: date; without Date, the service's clock is unknown, and no action is taken",
    ],
  ])("a missing header is described with its consequence: %j", (others, problem, text) => {
    const config = orThrow(
      parseConfig("proxywarden.yaml", "service: { base_url: https://proxy.test, api_key: k }", {}),
    );
    const ok = { status: 200, error: null };
    const call = { path: "/v1/nodes", category: "node_management", scope: "nodes:read", ...ok } as const;
    const headers = { "x-ratelimit-limit": "100", "x-ratelimit-remaining": "99", ...others };
    const unread = { nodes: null, sessions: null, pageZero: null, pageTwo: null, details: [] };
    const observed: ServiceObservation = { ...unread, calls: [{ ...call, headers }] };
    const found = findingsOf(observed, config.config).find(({ about }) => about === "headers");
    expect(found).toMatchObject({ problem, text });
  });

  test("a 429 ends the probe", async () => {
    const { calls, findings } = await probe({ fault: { kind: "status", status: 429, retryAfter: "60" } });
    expect(calls.map(({ status }) => status)).toEqual([429]);
    expect(findings.scopes).toMatchObject({ problem: true });
  });

  test("no call is made if too few calls of the month are left, and the rest of the report is printed", async () => {
    const { network, file } = await startService({ limits: { plan: "starter", month: { used: 99_995 } } });
    const problem = "5 of 100000 calls of this month are left; the probe may need 11; no call was made";
    const text = await runInProcess("check", "--config", file, "--probe");
    expect([text.code, text.out]).toEqual([1, expect.stringContaining(`${file}: valid\n`)]);
    expect(text.err).toContain(problem);
    const json = await runInProcess("check", "--config", file, "--probe", "--output", "json");
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({ valid: true, probe: { error: problem } });
    expect(replyCounts(network.service)).toEqual([]);
  });

  test("a journal that can't be read prevents the probe only if the plan has a monthly limit", async () => {
    const folder = createTempFolder();
    folder.write("proxywarden.db", "");
    const probeWith = async (limits: object) => {
      const { network, file } = await startService({ limits, config: { state: { path: folder.path } } });
      const { code, err } = await runInProcess("check", "--config", file, "--probe");
      return { code, err, calls: replyCounts(network.service).length };
    };
    const limited = await probeWith({ plan: "starter" });
    expect(limited).toMatchObject({ code: 1, calls: 0 });
    expect(limited.err).toMatch(
      /^proxywarden: no call was made, because it is unknown how many are left in this month: .* has schema version 0/m,
    );
    expect(limited.err).not.toContain("see usage scale below");
    const unlimited = await probeWith({ plan: "enterprise" });
    expect(unlimited.code).toBe(0);
    expect(unlimited.calls).toBeGreaterThan(0);
  });
});
