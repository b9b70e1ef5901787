import { describe, expect, test } from "vitest";
import type { JournalQuery } from "../../../src/model/remediation/journal.ts";
import { stepsOf } from "../fleet-fixture.ts";
import { fetchFrom, initialStatus, startTestServer } from "../http/test-server.ts";
import {
  emptyHistory,
  idleRemediation,
  idleStatus,
  SAMPLES_START_MS,
  sampleApproval,
  sampleExplanation,
  sampleHold,
  sampleRemediation,
  verifiedAction,
} from "./remediation-view-fixture.ts";

type Answer = { data: Record<string, unknown>[] };

/** Sends a request to a daemon with the sample remediation, and records the queries of the journal. */
async function getFromSample(path: string) {
  const queries: JournalQuery[] = [];
  const web = await startTestServer({ remediation: () => sampleRemediation(queries) });
  const answer = await fetchFrom(web, path);
  return { status: answer.status, json: JSON.parse(answer.text), queries };
}

describe("decisions", () => {
  test("name every blocker, with times in ISO 8601", async () => {
    const { json } = await getFromSample("/api/v1/decisions");
    expect(json).toEqual({
      data: [
        {
          at: "2026-11-21T03:15:00.000Z",
          policy: "reboot-offline",
          node: "node_1",
          name: null,
          country: null,
          region: null,
          episode: "ep-1",
          step: 1,
          mode: "enforce",
          verdict: "hold",
          blockers: [
            { reason: "window", detail: "outside nights, which begins at 23:00" },
            { reason: "max_actions", detail: "6 of 6 actions within 1h" },
          ],
          evidence: {
            observed_at: "2026-11-21T03:00:00.000Z",
            fields: { "node.status": "offline", "node.last_seen": "2026-11-21T02:40:00.000Z" },
          },
        },
      ],
    });
  });

  test.each([
    ["", { limit: 100 }],
    ["?limit=1000", { limit: 1_000 }],
    ["?node=node_1&policy=p&limit=7", { node: "node_1", policy: "p", limit: 7 }],
    ["?until=2026-11-21T03:00:00Z", { until: SAMPLES_START_MS, limit: 100 }],
    ["?until=2026-11-21T03:00:00.250Z", { until: SAMPLES_START_MS + 250, limit: 100 }],
  ])("with %j are queried from the journal", async (search, query) => {
    expect((await getFromSample(`/api/v1/decisions${search}`)).queries).toEqual([query]);
    expect((await getFromSample(`/api/v1/actions${search}`)).queries).toEqual([query]);
  });

  test.each([
    ["decisions", "limit=1001", 'parameter "limit": must be a whole number from 1 to 1000'],
    ["decisions", "limit=0", 'parameter "limit": must be a whole number from 1 to 1000'],
    ["decisions", "node=", 'parameter "node": must be 1 to 256 characters'],
    ["decisions", "until=yesterday", 'parameter "until": must be a time in UTC, such as 2026-11-21T03:12:44Z'],
    [
      "decisions",
      "until=2026-02-31T03:00:00Z",
      'parameter "until": must be a time in UTC, such as 2026-11-21T03:12:44Z',
    ],
    ["decisions", "state=awaiting", 'parameter "state": unknown; must be one of node, policy, until, limit'],
    ["actions", "state=ended", 'parameter "state": must be one of awaiting, approved'],
    ["actions", "stat=awaiting", 'parameter "stat": unknown; must be one of node, policy, until, limit, state'],
    ["actions", "node=a&node=b", 'parameter "node": must be given only once'],
    ["policies", "node=a", 'parameter "node": unknown; must be one of policy'],
  ])("%s?%s is refused, naming the parameter", async (route, search, message) => {
    const { status, json, queries } = await getFromSample(`/api/v1/${route}?${search}`);
    expect({ status, json }).toEqual({ status: 400, json: { error: "bad_request", message } });
    expect(queries).toEqual([]);
  });
});

describe("actions", () => {
  test("show request, times and outcome", async () => {
    const { json } = await getFromSample("/api/v1/actions");
    expect((json as Answer).data[1]).toEqual({
      id: "act-2",
      episode: "ep-1",
      policy: "reboot-offline",
      node: "node_1",
      name: null,
      country: "DE",
      region: "eu-west",
      step: 1,
      dry_run: false,
      request: { kind: "reboot", force: true },
      state: "ended",
      outcome: "verified",
      proof: "uptime_fell",
      in_doubt: false,
      detail: "HTTP 200",
      created_at: "2026-11-21T03:20:00.000Z",
      sent_at: "2026-11-21T03:20:01.500Z",
      ended_at: "2026-11-21T03:26:00.000Z",
      uptime_hours_before: 300,
      rebooting_seen: true,
      operator: null,
      answered_at: null,
      expires_at: null,
      evidence: expect.objectContaining({ observed_at: "2026-11-21T03:00:00.000Z" }),
    });
  });

  test("with state=awaiting or approved are those not sent yet, filtered like the others", async () => {
    const ids = async (search: string) =>
      ((await getFromSample(`/api/v1/actions?state=${search}`)).json as Answer).data.map(({ id }) => id);
    expect(await ids("awaiting")).toEqual(["act-3"]);
    expect(await ids("approved")).toEqual(["act-4"]);
    expect(await ids("awaiting&node=node_1&policy=reboot-offline")).toEqual(["act-3"]);
    expect(await ids("awaiting&node=node_2")).toEqual([]);
    expect(await ids("awaiting&policy=other")).toEqual([]);
    expect(await ids("awaiting&until=2026-11-21T03:29:59Z")).toEqual([]);
    const { queries, json } = await getFromSample("/api/v1/actions?state=awaiting");
    expect(queries).toEqual([]);
    expect((json as Answer).data[0]).toMatchObject({
      request: { kind: "quarantine", reason: "reboot-offline", duration_minutes: 1_440 },
      sent_at: null,
      outcome: null,
      expires_at: "2026-11-21T07:30:00.000Z",
    });
  });

  test("with state=awaiting respect the limit", async () => {
    const many = [sampleApproval, { ...sampleApproval, id: "act-4" }, { ...sampleApproval, id: "act-5" }];
    const web = await startTestServer({ remediation: () => ({ ...idleRemediation, approvals: () => many }) });
    const { data } = JSON.parse((await fetchFrom(web, "/api/v1/actions?state=awaiting&limit=2")).text) as Answer;
    expect(data.map(({ id }) => id)).toEqual(["act-3", "act-4"]);
  });
});

describe("policies", () => {
  test("show their status and their spec, durations in seconds", async () => {
    const { json } = await getFromSample("/api/v1/policies");
    expect(json).toEqual({
      data: [
        {
          name: "reboot-offline",
          mode: "enforce",
          fell_back: false,
          proven: true,
          matched: { nodes: 24, of: 1_200 },
          pending: 2,
          firing: 1,
          unknown: 3,
          episodes: { firing: 1 },
          spec: {
            mode: "enforce",
            match: null,
            when: 'node.status == "offline"',
            for_seconds: 900,
            clear_for_seconds: 600,
            max_age_seconds: null,
            steps: [
              { action: "disconnect", verify: { within_seconds: 180, expect: null } },
              { action: "reboot", force: true, verify: { within_seconds: 600, expect: "node.uptime_hours < 1" } },
              {
                action: "quarantine",
                duration_seconds: 86_400,
                reason: "{{policy}}",
                verify: { within_seconds: 300, expect: null },
              },
              { action: "notify", receiver: "oncall" },
            ],
            retry: { episodes: 2, every_seconds: 21_600, forget_after_seconds: 86_400 },
            windows: ["nights"],
            blocked_by: [{ query: "up == 0" }, { alerts: ['severity="critical"'] }],
          },
        },
      ],
    });
  });

  test("are filtered by name", async () => {
    expect((await getFromSample("/api/v1/policies?policy=reboot-offline")).json.data).toHaveLength(1);
    expect((await getFromSample("/api/v1/policies?policy=other")).json.data).toEqual([]);
  });
});

describe("a node", () => {
  test("shows the verdict of every policy, episodes, actions and decisions", async () => {
    const { json } = await getFromSample("/api/v1/nodes/node_1");
    expect(json).toMatchObject({
      id: "node_1",
      known: true,
      explained_at: "2026-11-21T03:40:00.000Z",
      policies: [
        {
          policy: "reboot-offline",
          mode: "enforce",
          verdict: "true",
          matched: true,
          unknowns: [],
          fields: { "node.status": "offline" },
          for_seconds: 900,
          timer: { state: "firing", since: "2026-11-21T03:15:00.000Z", true_seconds: 2_400, clear_seconds: 0 },
          other_status_at: "2026-11-21T03:14:00.000Z",
          episode: { id: "ep-1", state: "firing", opened_at: "2026-11-21T03:15:00.000Z", closed_at: null },
          steps: ["disconnect", "forced reboot", "quarantine", "notify"],
          blockers: [{ reason: "approval", detail: "act-3 waits for approval" }],
        },
      ],
      holds: [],
      episodes: [{ id: "ep-1" }],
      actions: [{ id: "act-3" }, { id: "act-2" }],
      decisions: [{ verdict: "hold" }],
    });
  });

  test("shows its holds", async () => {
    const veto = { ...sampleHold, policy: "p", kind: "vetoed", until: SAMPLES_START_MS + 1 } as const;
    const web = await startTestServer({
      remediation: () => ({
        ...idleRemediation,
        explain: (node) => stepsOf({ ...sampleExplanation(node), holds: [{ ...sampleHold, operator: "alice" }, veto] }),
      }),
    });
    const { holds } = JSON.parse((await fetchFrom(web, "/api/v1/nodes/node_1")).text);
    const at = "2026-11-21T03:00:00.000Z";
    expect(holds).toEqual([
      { kind: "held", policy: null, at, until: null, reason: "disk swap", operator: "alice" },
      { kind: "vetoed", policy: "p", at, until: "2026-11-21T03:00:00.001Z", reason: "disk swap", operator: null },
    ]);
  });

  test("that is gone is shown while the journal has rows about it", async () => {
    const historyOf = async (node: string) =>
      node === "node_9" ? { ...emptyHistory, actions: [verifiedAction] } : emptyHistory;
    const web = await startTestServer({ remediation: () => ({ ...idleRemediation, historyOf }) });
    const gone = await fetchFrom(web, "/api/v1/nodes/node_9");
    expect(gone.status).toBe(200);
    expect(JSON.parse(gone.text)).toMatchObject({ id: "node_9", known: false, actions: [{ id: "act-2" }] });
    expect((await fetchFrom(web, "/api/v1/nodes/node_8")).status).toBe(404);
  });
});

describe("the status", () => {
  test("shows pause, breaker, trust, storm, journal and API key", async () => {
    const status = {
      ...idleStatus,
      paused: { at: SAMPLES_START_MS, reason: "deploy", operator: "alice" },
      breaker: { openedAt: SAMPLES_START_MS, nodes: 12, causes: "12 under high-cpu" },
      trust: [{ reason: "inventory_shrunk", detail: "300 of 500 nodes" }] as const,
      stormUntil: SAMPLES_START_MS + 60_000,
      stormCause: "101 of 500 nodes were unhealthy",
      journal: "the journal can't be written: database or disk is full",
      credentials: "the service answered 401",
      roundFailure: "no remediation round has succeeded for 20m: this must not happen",
      inFlight: 1,
    };
    const web = await startTestServer({ remediation: () => ({ ...sampleRemediation(), status: () => status }) });
    expect(JSON.parse((await fetchFrom(web, "/api/v1/status")).text)).toEqual({
      ...initialStatus,
      accepts_commands: false,
      remediation: {
        mode: "enforce",
        paused: { at: "2026-11-21T03:00:00.000Z", until: null, reason: "deploy", operator: "alice" },
        breaker: { opened_at: "2026-11-21T03:00:00.000Z", nodes: 12, causes: "12 under high-cpu" },
        trusted: false,
        trust: [{ reason: "inventory_shrunk", detail: "300 of 500 nodes" }],
        storm_until: "2026-11-21T03:01:00.000Z",
        storm_cause: "101 of 500 nodes were unhealthy",
        journal: "the journal can't be written: database or disk is full",
        credentials: "the service answered 401",
        round_failure: "no remediation round has succeeded for 20m: this must not happen",
        baseline_nodes: 500,
        limits: { max_disrupted: 5 },
        approval_ttl_seconds: 14_400,
        in_flight: 1,
        awaiting_approval: 1,
        held_nodes: 0,
      },
    });
  });

  test("shows that nothing holds actions", async () => {
    const web = await startTestServer();
    const { remediation } = JSON.parse((await fetchFrom(web, "/api/v1/status")).text);
    expect(remediation).toMatchObject({ trusted: true, trust: [], paused: null, breaker: null, storm_until: null });
    expect(remediation).toMatchObject({ journal: null, credentials: null, round_failure: null });
  });
});
