import { describe, expect, test } from "vitest";
import { inlineSecret } from "../../src/platform/secret-file.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import {
  emptyExplanation,
  emptyHistory,
  heldDecision,
  idleRemediation,
  SAMPLES_START_MS,
  sampleApproved,
  sampleExplanation,
  sampleHistory,
  sampleHold,
  sampleRemediation,
} from "../web/api/remediation-view-fixture.ts";
import { buildFleet, stepsOf } from "../web/fleet-fixture.ts";
import { startServerWithFiles } from "../web/http/secured-server.ts";
import { adminOperators, startTestServer } from "../web/http/test-server.ts";
import { paragraph, printExplanation as run } from "./explain-command.ts";
import { runInProcess } from "./terminal.ts";

const MINUTE = 60_000;

describe("explain asks the running daemon", () => {
  test("and understands --at by the daemon's clock, which may be far ahead of ours", async () => {
    const asked: (number | undefined)[] = [];
    const ahead = Date.UTC(2100, 0, 1);
    const { url } = await startTestServer({
      status: () => ({ now: new Date(ahead).toISOString() }),
      remediation: () => ({
        ...sampleRemediation(),
        historyOf: async (_, until) => {
          asked.push(until);
          return emptyHistory;
        },
      }),
    });
    expect((await run("node_1", { url, at: { agoMs: MINUTE } })).code).toBe(0);
    expect(asked).toEqual([ahead - MINUTE]);
  });

  test("and shows every policy, reason, action and outcome", async () => {
    const seen = { status: "offline", name: "de-1", country: "DE", region: "eu-west" };
    const { url } = await startTestServer({
      remediation: () => sampleRemediation(),
      node: (id) => ({ id, ...seen, last_seen: "2026-11-21T02:40:00.000Z", age_seconds: 12.4 }),
    });
    expect(await run("node_1", { url })).toEqual({
      code: 0,
      err: "",
      out: `de-1 (node_1), at 2026-11-21 03:40:00 UTC
  status    offline (DE, eu-west)
  last seen 2026-11-21 02:40:00 UTC, 1h ago
  observed  12s ago
  approval  quarantine for 1d by reboot-offline waits until 2026-11-21 07:30:00 UTC: npm start -- approve act-3, or reject
  source    the running daemon

reboot-offline (enforce)
  verdict   true
  read      node.status = offline
            node.last_seen = 2026-11-21T02:40:00.000Z
  timer     firing, true for 40m; first true at 2026-11-21 03:15:00 UTC
  episode   ep-1: waiting since 2026-11-21 03:15:00 UTC
            opened 2026-11-21 03:15:00 UTC
            at step 2 of 4 (forced reboot), 1 sent
  decision  hold on step 2, 2026-11-21 03:15:00 UTC, mode enforce
            - window: outside nights, which begins at 23:00
            - max_actions: 6 of 6 actions within 1h
  now       1 reason would hold an action
            - approval: act-3 waits for approval
              ends with approve or reject, once no other reason holds the node; an approval expires after safety.approval_ttl

actions, newest first
  act-3  quarantine for 1d by reboot-offline, step 3 of ep-1
      waiting for approval
      recorded 2026-11-21 03:30:00 UTC
  act-2  forced reboot by reboot-offline, step 2 of ep-1
      verified, proof: uptime_fell
      sent 2026-11-21 03:20:01 UTC, ended 2026-11-21 03:26:00 UTC
      HTTP 200

decisions, newest first
  2026-11-21 03:15:00 UTC  reboot-offline  hold: window, max_actions
`,
    });
  });

  test("and says how to withdraw the approval of an action that is not sent yet", async () => {
    const approved = { ...sampleApproved, node: "node_1" };
    const { url } = await startTestServer({
      remediation: () => ({
        ...sampleRemediation(),
        historyOf: async () => ({ ...emptyHistory, actions: [approved] }),
        approvals: (state) => (state === "approved" ? [approved] : []),
      }),
    });
    expect(paragraph((await run("node_1", { url })).out, "node_1")).toContain(
      "  approval  reboot by reboot-offline is approved until 2026-11-21 07:35:00 UTC: npm start -- reject act-4 withdraws it",
    );
  });

  test("with the token of an operator in the environment or in a file, if the daemon requires a login", async () => {
    const deps = {
      remediation: () => sampleRemediation(),
      fleet: () => buildFleet([{ id: "node_1" }]),
      operators: () => adminOperators(inlineSecret("sesame")),
    };
    const users = `basic_auth_users: { ann: $2y$10$${"a".repeat(53)} }\n`;
    const { web } = await startServerWithFiles({ "web.yml": users }, { deps });
    const explained = await run("name of node_1", { url: web.url }, { PROXYWARDEN_ADMIN_TOKEN: "sesame" });
    expect(explained).toMatchObject({ code: 0, err: "" });
    const file = createTempFolder().write("token", "sesame\n");
    expect(await runInProcess("explain", "node_1", "--url", web.url, "--token-file", file)).toMatchObject({ code: 0 });
  });

  test("and shows why a verdict is unknown, the timer and the operator's hold", async () => {
    const explanation = sampleExplanation("node_1");
    const [policy] = explanation.policies;
    const { url } = await startTestServer({
      remediation: () => ({
        ...idleRemediation,
        explain: (node) =>
          stepsOf({
            ...emptyExplanation(node),
            known: true,
            holds: [sampleHold],
            policies: [
              {
                ...policy!,
                verdict: "unknown",
                matched: null,
                unknowns: [{ field: "node.cpu_usage", why: "observed 20m ago, older than 15m" }],
                fields: {},
                timer: { ...policy!.timer!, state: "pending", trueMs: 4 * MINUTE },
                episode: null,
                blockers: [],
              },
            ],
          }),
      }),
    });
    const { out } = await run("node_1", { url });
    expect(paragraph(out, "node_1")).toContain(
      "  held      held for every policy since 2026-11-21 03:00:00 UTC, until it is released: disk swap",
    );
    expect(paragraph(out, "reboot-offline")).toEqual([
      "reboot-offline (enforce)",
      "  verdict   unknown: no action is taken, and the timer is stopped",
      "            it is unknown whether the policy matches this node",
      "            - node.cpu_usage: observed 20m ago, older than 15m",
      "  timer     pending for 4m of 15m, since 2026-11-21 03:15:00 UTC",
      "            another status was last seen 2026-11-21 03:14:00 UTC: time before that does not count",
      "  episode   none",
      "  decision  none yet",
      "  now       nothing holds an action",
    ]);
    expect(out).toMatch(/\n\nno actions\n\nno decisions\n$/);
  });

  test("and does not say on a standby what the leader would do", async () => {
    const [policy] = sampleExplanation("node_1").policies;
    const unknowns = [{ field: "the node", why: "this daemon stands by" }];
    const standby = { ...policy!, verdict: "unknown", matched: null, unknowns, fields: {}, blockers: [] } as const;
    const explain = (node: string) => stepsOf({ ...emptyExplanation(node), policies: [standby] });
    const { url } = await startTestServer({ remediation: () => ({ ...idleRemediation, explain }) });
    const { out } = await run("node_1", { url });
    expect(paragraph(out, "reboot-offline").slice(0, 4)).toEqual([
      "reboot-offline (enforce)",
      "  verdict   unknown",
      "            it is unknown whether the policy matches this node",
      "            - the node: this daemon stands by",
    ]);
    expect(out).not.toContain("nothing holds an action");
  });

  test("and shows of a policy that does not match the node only that and its records", async () => {
    const [policy] = sampleExplanation("node_1").policies;
    const unmatched = {
      ...policy!,
      verdict: "false",
      matched: false,
      timer: null,
      episode: null,
      blockers: [],
    } as const;
    const { url } = await startTestServer({
      remediation: () => ({
        ...sampleRemediation(),
        explain: (node) =>
          stepsOf({
            ...sampleExplanation(node),
            policies: [{ ...unmatched, policy: "full-disk" }, unmatched],
          }),
      }),
    });
    const { out } = await run("node_1", { url });
    expect(paragraph(out, "full-disk")).toEqual([
      "full-disk (enforce)",
      "  verdict   the policy does not match this node",
    ]);
    expect(paragraph(out, "reboot-offline")).toEqual([
      "reboot-offline (enforce)",
      "  verdict   the policy does not match this node",
      "  episode   ep-1: waiting since 2026-11-21 03:15:00 UTC",
      "            opened 2026-11-21 03:15:00 UTC",
      "            at step 2 of 4 (forced reboot), 1 sent",
      "  decision  hold on step 2, 2026-11-21 03:15:00 UTC, mode enforce",
      "            - window: outside nights, which begins at 23:00",
      "            - max_actions: 6 of 6 actions within 1h",
    ]);
  });

  test("and shows the records of a removed policy", async () => {
    const { url } = await startTestServer({
      remediation: () => ({
        ...sampleRemediation(),
        explain: (node) => stepsOf({ ...sampleExplanation(node), policies: [] }),
      }),
    });
    const { out } = await run("node_1", { url });
    expect(paragraph(out, "reboot-offline")).toContain("            - max_actions: 6 of 6 actions within 1h");
  });

  test("and prints everything as JSON", async () => {
    const { url } = await startTestServer({ remediation: () => sampleRemediation() });
    const { code, out } = await run("node_1", { url, output: "json" });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      id: "node_1",
      source: "daemon",
      explained_at: "2026-11-21T03:40:00.000Z",
      policies: [{ policy: "reboot-offline", blockers: [{ reason: "approval" }] }],
      actions: [{ id: "act-3" }, { id: "act-2" }],
    });
  });

  test("and, at a past time, leaves out what came later", async () => {
    const { url } = await startTestServer({ remediation: () => sampleRemediation() });
    const { out } = await run("node_1", { url, at: SAMPLES_START_MS + 22 * MINUTE });
    expect(paragraph(out, "actions")).toEqual([
      "actions, newest first",
      "  act-2  forced reboot by reboot-offline, step 2 of ep-1",
      "      sent, being verified",
      "      sent 2026-11-21 03:20:01 UTC",
    ]);
    expect(out).toContain("source    the journal; verdicts, timers and ended holds of the past are not kept");
    expect(out).not.toContain("timer ");
  });

  test("and, at a past time, shows episodes and commands that are older than the latest ones", async () => {
    const command = { at: SAMPLES_START_MS, operator: "alice", node: "node_1", action: null, detail: "" };
    const commands = [
      { ...command, command: "release", at: SAMPLES_START_MS + MINUTE },
      { ...command, command: "hold" },
    ] as const;
    const { url } = await startTestServer({
      remediation: () => ({
        ...sampleRemediation(),
        historyOf: async (node, until = Number.POSITIVE_INFINITY) => ({
          ...sampleHistory(node),
          operatorCommands: commands.filter(({ at }) => at <= until).slice(0, 1),
        }),
      }),
    });
    const { out } = await run("node_1", { url, at: SAMPLES_START_MS, output: "json" });
    expect(JSON.parse(out).orders).toMatchObject([{ command: "hold", operator: "alice" }]);
  });

  test("and replaces control characters", async () => {
    const odd = { ...heldDecision, blockers: [{ reason: "held", detail: "by \u001b]0;x\u0007 me" }] as const };
    const { url } = await startTestServer({
      remediation: () => ({
        ...sampleRemediation(),
        historyOf: async (node) => ({ ...sampleHistory(node), decisions: [odd] }),
      }),
    });
    const { out } = await run("node_1", { url });
    expect(out).toContain("- held: by \u{fffd}]0;x\u{fffd} me");
    expect(out.replaceAll("\n", "")).not.toMatch(/\p{Cc}|\p{Cf}/u);
  });

  test("and exits with 1 for an unknown node, or without a daemon", async () => {
    const { url } = await startTestServer({ fleet: () => buildFleet([{ id: "node_1" }]) });
    expect(await run("node_2", { url })).toEqual({
      code: 1,
      out: "",
      err: 'proxywarden: no node with the id "node_2" in the fleet\n',
    });
    expect(await run("node_1", {})).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(/^proxywarden: no daemon is reachable at http:\/\/127\.0\.0\.1:1 .*--url\n$/),
    });
  });
});
