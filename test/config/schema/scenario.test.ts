import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { fileText, loadScenarioText, scenarioErrors } from "../config-fixtures.ts";

test("a scenario is a calm network without faults by default", () => {
  const never = Number.POSITIVE_INFINITY;
  const { service, ...network } = loadScenarioText("seed: 7");
  expect(network).toEqual({
    seed: 7,
    nodes: 500,
    sessions: 5_000,
    rates: {
      faultEveryMs: 30 * DAY_MS,
      selfHealing: 0.5,
      incurable: 0.1,
      flapping: 0.2,
      rebootMs: 2 * MINUTE_MS,
      maintenanceEveryMs: 30 * DAY_MS,
      repairMs: 12 * HOUR_MS,
    },
    churn: {
      joinEveryMs: never,
      leaveEveryMs: never,
      vanishAfterReboot: 0,
      failAfterReboot: 0,
      vanishForMs: never,
      reuseIds: false,
    },
    faults: [],
    keys: [{ key: "simulation-key", scopes: ["nodes:read", "nodes:write", "sessions:read", "sessions:write"] }],
  });
  expect(service).toMatchObject({ limiter: "token_bucket", firstPage: 1, pageLimitDefault: 50, plan: "business" });
  const served = { recordsMax: never, totalCounts: "list", totalLagMs: 0, totalOffBy: 0 };
  expect(service.nodeList).toEqual({ order: "joined", ...served });
  expect(service.sessionList).toEqual({ order: "started_at", ...served });
});

test("every option is read", () => {
  const text = `
seed: 4294967295
nodes: 0
sessions: 12
service:
  limiter: fixed_window
  instances: 3
  rate_limit_headers: plan
  first_page: 0
  page_limit_default: 10
  page_limit_max: 20
  page_limit_over: reject
  page_limit_echo: requested
  pages_after_end: last
  usage_scale: percent
  detail_uptime: exact
  uptime_since: creation
  detail_location: other_case
  created_at: boot
  quarantine_status: maintenance
  quarantine_end: never
  quarantine_minutes_max: 60
  reboot_status: offline
  booted_status: starting
  offline_values: zero
  timestamps: offset
  last_seen_every: 1m
  detail_last_seen_every: 5m
  error_body: empty
  action_reply: no_content
  list_ended_sessions: true
  plan: starter
  unknown_node_status: 410
  plan_cap_status: 403
  compression: accepted
  token_bucket_reset: next_token
  rate_limit_reset: milliseconds
  node_list: { order: -created_at, records_max: 10, total_counts: page, total_lag: 30s, total_off_by: -1, total_fixed: 9 }
  session_list: { order: bytes_received, total_off_by: 2 }
rates: { fault_every: never, self_healing: 1%, incurable: 2%, flapping: 3%, reboot: 4s, maintenance_every: 5d, repair: never }
churn: { join_every: 40s, leave_every: 1m, vanish_after_reboot: 20%, fail_after_reboot: 10%, vanish_for: 1h, reuse_ids: true }
keys: [{ key: k, scopes: [nodes:read] }]
`;
  expect(loadScenarioText(text)).toEqual({
    seed: 4_294_967_295,
    nodes: 0,
    sessions: 12,
    service: {
      limiter: "fixed_window",
      instances: 3,
      rateLimitHeaders: "plan",
      firstPage: 0,
      pageLimitDefault: 10,
      pageLimitMax: 20,
      pageLimitOver: "reject",
      pageLimitEcho: "requested",
      pagesAfterEnd: "last",
      usageScale: "percent",
      detailUptime: "exact",
      uptimeSince: "creation",
      detailLocation: "other_case",
      createdAt: "boot",
      quarantineStatus: "maintenance",
      quarantineEnd: "never",
      quarantineMinutesMax: 60,
      rebootStatus: "offline",
      bootedStatus: "starting",
      offlineValues: "zero",
      timestamps: "offset",
      lastSeenEveryMs: 60_000,
      detailLastSeenEveryMs: 300_000,
      errorBody: "empty",
      actionReply: "no_content",
      listEndedSessions: true,
      plan: "starter",
      unknownNodeStatus: 410,
      planCapStatus: 403,
      compression: "accepted",
      tokenBucketReset: "next_token",
      rateLimitReset: "milliseconds",
      nodeList: {
        order: "-created_at",
        recordsMax: 10,
        totalCounts: "page",
        totalLagMs: 30_000,
        totalOffBy: -1,
        totalFixed: 9,
      },
      sessionList: {
        order: "bytes_received",
        recordsMax: Number.POSITIVE_INFINITY,
        totalCounts: "list",
        totalLagMs: 0,
        totalOffBy: 2,
      },
    },
    rates: {
      faultEveryMs: Number.POSITIVE_INFINITY,
      selfHealing: 0.01,
      incurable: 0.02,
      flapping: 0.03,
      rebootMs: 4_000,
      maintenanceEveryMs: 432_000_000,
      repairMs: Number.POSITIVE_INFINITY,
    },
    churn: {
      joinEveryMs: 40_000,
      leaveEveryMs: 60_000,
      vanishAfterReboot: 0.2,
      failAfterReboot: 0.1,
      vanishForMs: 3_600_000,
      reuseIds: true,
    },
    faults: [],
    keys: [{ key: "k", scopes: ["nodes:read"] }],
  });
});

test("the shipped rough day has every kind of fault", () => {
  const read = loadScenarioText(fileText("config/scenarios/rough-day.yaml"));
  const faults = new Map(read.faults.map((fault) => [fault.fault.kind, fault]));
  expect([...faults.keys()].toSorted()).toEqual([
    "bad_details",
    "bad_json",
    "bad_records",
    "cached",
    "clock_skew",
    "duplicates",
    "empty_list",
    "gateway_limit",
    "hang",
    "html",
    "huge_body",
    "limit_headers",
    "lost_reply",
    "many_labels",
    "page_ignored",
    "redirect",
    "region_dark",
    "reset",
    "slow_drip",
    "stale_last_seen",
    "status",
    "truncate",
    "unsuccessful",
    "vanished",
    "wrong_date",
    "wrong_shape",
  ]);
  expect(read.faults[0]).toEqual({
    afterMs: 120_000,
    forMs: 60_000,
    share: 0.2,
    fault: { kind: "status", status: 503, retryAfter: "10" },
  });
  expect(faults.get("clock_skew")).toEqual({
    afterMs: 3_660_000,
    forMs: 600_000,
    fault: { kind: "clock_skew", skewMs: -90_000 },
  });
  expect(faults.get("wrong_date")?.fault).toEqual({ kind: "wrong_date", offsetMs: 3_600_000 });
  expect(faults.get("hang")).toMatchObject({ match: "GET /v1/nodes", share: 0.5, fault: { kind: "hang" } });
  expect(faults.get("vanished")?.fault).toEqual({ kind: "vanished", missing: 0.33 });
  expect(faults.get("bad_records")?.fault).toEqual({ kind: "bad_records", spoiled: 0.02 });
  expect(faults.get("slow_drip")?.fault).toEqual({ kind: "slow_drip", bytesPerSecond: 2_000 });
  expect(faults.get("huge_body")?.fault).toEqual({ kind: "huge_body", bytes: 64_000_000 });
  expect(faults.get("duplicates")?.fault).toEqual({ kind: "duplicates", records: 3 });
  expect(faults.get("page_ignored")?.fault).toEqual({ kind: "page_ignored", states: "requested" });
  expect(faults.get("bad_details")?.fault).toEqual({ kind: "bad_details", nodes: 0.1, answer: "not_found" });
  expect(faults.get("gateway_limit")?.fault).toEqual({
    kind: "gateway_limit",
    requestsPerMinute: 40,
    burst: 10,
    retryAfter: 5,
  });
  expect(faults.get("cached")?.fault).toEqual({ kind: "cached", maxAgeMs: 90_000 });
  const headers = { limit: "0", remaining: "-1", reset: "0" };
  expect(faults.get("limit_headers")?.fault).toEqual({ kind: "limit_headers", ...headers });
  expect(faults.get("region_dark")?.fault).toEqual({ kind: "region_dark", region: "eu-west" });
});

test("a fault must match requests that the API has", () => {
  const errorsOf = (match: string) => scenarioErrors(`faults: [{ kind: hang, for: 1m, match: "${match}" }]\n`);
  for (const match of ["GET", "/", "/v1", "POST /v1/", "GET /v1/nodes?", "/v1/nodes/node_7", "/v1/sessions/stats"]) {
    expect(errorsOf(match)).toEqual([]);
  }
  for (const match of ["GET /v1/node", "/nodes", "/v2/nodes", "GET /v1/nodesx"]) {
    expect(errorsOf(match)).toEqual([expect.stringContaining("must be a method, the beginning of a path of the API")]);
  }
});

test("errors of a scenario are reported as those of a configuration", () => {
  const text = `nodes: ten
rates: { fault_every: 0s, repair: nevr }
keys: [{ key: "", scopes: [node:read] }]
faults:
  - { kind: hangs, for: 5s }
  - { for: 1m }
  - { kind: status, for: 1m, statu: 500, retry_after: [1] }
  - 5
  - { kind: vanished, for: 1m, share: 200%, match: PUT /v1 }
  - { kind: hang, for: 1m, missing: 5% }
  - { kind: clock_skew, for: 1m, skew: +5 }
`;
  const kinds =
    "must be one of status, gateway_limit, limit_headers, wrong_date, hang, reset, truncate, bad_json, html, unsuccessful, wrong_shape, bad_records, many_labels, slow_drip, huge_body, redirect, lost_reply, vanished, empty_list, duplicates, page_ignored, bad_details, stale_last_seen, cached, region_dark, clock_skew";
  expect(scenarioErrors(text)).toEqual([
    '1:8: nodes: found "ten"; must be a whole number from 0 to 1000000',
    '2:23: rates.fault_every: found "0s"; must be a duration such as 30d, or never',
    '2:35: rates.repair: found "nevr"; must be a duration such as 30d, or never',
    '3:15: keys[0].key: found ""; must be an API key',
    '3:28: keys[0].scopes[0]: found "node:read"; must be one of nodes:read, nodes:write, sessions:read, sessions:write; did you mean "nodes:read"?',
    `5:13: faults[0].kind: found "hangs"; ${kinds}; did you mean "hang"?`,
    `6:5: faults[1].kind: missing; ${kinds}`,
    "7:5: faults[2].status: missing; must be a whole number from 200 to 599",
    '7:30: faults[2].statu: unknown key; did you mean "status"?',
    "7:55: faults[2].retry_after: found a list; must be a number of seconds, or an HTTP-date in quotes",
    "8:5: faults[3]: found 5; must be a mapping with the keys kind, for and those of the kind",
    "9:5: faults[4].missing: missing; must be a percentage from 0% to 100%, such as 20%",
    '9:39: faults[4].share: found "200%"; must be a percentage from 0% to 100%, such as 20%',
    '9:52: faults[4].match: found "PUT /v1"; must be a method, the beginning of a path of the API, or both, such as GET /v1/nodes',
    "10:28: faults[5].missing: unknown key; must be one of kind, after, for, match, share",
    "11:40: faults[6].skew: found +5; must be a duration such as 90s or -90s",
  ]);
});

test("a Retry-After may be a date, at the given time after the response", () => {
  const read = loadScenarioText("faults: [{ kind: status, status: 503, retry_after_date: 2m, for: 1m }]");
  expect(read.faults[0]?.fault).toEqual({ kind: "status", status: 503, retryAfterDateMs: 120_000 });
});

test("rejects header values that can't be sent, and keys that a fault ignores", () => {
  const text = `faults:
  - { kind: redirect, for: 1m, location: "https://bücher.example/" }
  - { kind: status, status: 503, for: 1m, retry_after: "später" }
  - { kind: status, status: 503, for: 1m, retry_after: 5, retry_after_date: 5s }
  - { kind: region_dark, for: 1m, region: eu-west, share: 5% }
  - { kind: clock_skew, for: 1m, skew: 5s, match: GET }
  - { kind: status, status: 500, for: 1m, bare: true, executed: true }
`;
  const refused = "unknown key; must be one of kind, after, for";
  expect(scenarioErrors(text)).toEqual([
    '2:42: faults[0].location: found "https://bücher.example/"; must be the URL of a Location header, of visible ASCII characters',
    '3:56: faults[1].retry_after: found "später"; must be a number of seconds, or an HTTP-date in quotes, in ASCII',
    "4:5: faults[2]: found the keys kind, status, for, retry_after, retry_after_date; must have retry_after or retry_after_date, not both",
    `5:52: faults[3].share: ${refused}, region`,
    `6:44: faults[4].match: ${refused}, skew`,
    "7:5: faults[5]: found the keys kind, status, for, bare, executed; must not have both bare and executed",
  ]);
});
