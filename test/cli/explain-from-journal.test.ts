import { describe, expect, test } from "vitest";
import { type ExplainOptions, runExplain } from "../../src/cli/explain.ts";
import { openSqliteStore } from "../../src/journal/sqlite/store.ts";
import type { JournalChange } from "../../src/model/remediation/journal.ts";
import { orThrow } from "../harness/or-throw.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import {
  awaitingAction,
  episode,
  heldDecision,
  SAMPLES_START_MS,
  verifiedAction,
} from "../web/api/remediation-view-fixture.ts";
import { paragraph, printExplanation as run } from "./explain-command.ts";
import { captureOutput } from "./terminal.ts";

const MINUTE = 60_000;

const CONFIG = `service: {base_url: "https://proxy.example.net", api_key: sesame, usage_scale: ratio}
state: {path: state}
policies: [policies.yaml]
`;

const POLICIES = `policies:
  - name: reboot-offline
    when: node.status == "offline"
    for: 15m
    steps:
      - {action: disconnect, verify: {within: 3m}}
      - {action: reboot, force: true, verify: {within: 10m}}
`;

/** Writes a journal as a daemon does, and a configuration that names it. */
function configured(changes: readonly JournalChange[], text = CONFIG): string {
  const folder = createTempFolder();
  const store = orThrow(openSqliteStore(folder.pathOf("state")));
  store.journal.commit(changes);
  store.close();
  folder.write("policies.yaml", POLICIES);
  return folder.write("proxywarden.yaml", text);
}

const night: readonly JournalChange[] = [
  { kind: "decision", row: heldDecision },
  { kind: "episode", row: episode },
  { kind: "action", row: verifiedAction },
  { kind: "action", row: awaitingAction },
];

describe("explain reads the journal", () => {
  test("only if an id is given", async () => {
    expect(await run("", { config: configured(night) })).toEqual({
      code: 2,
      out: "",
      err: "proxywarden: the id or name of the node must be 1 to 256 characters\n",
    });
  });

  test("until the process is asked to stop", async () => {
    const options = { url: "http://127.0.0.1:1", config: configured(night), output: "text" } as const;
    const stopped = captureOutput((context) =>
      runExplain(options, { ...context, stop: AbortSignal.abort() }, ["node_7"]),
    );
    expect(await stopped).toEqual({ code: 1, out: "", err: "proxywarden: stopped\n" });
  });

  test("with timers, episodes, decisions and actions, without a running daemon", async () => {
    const timer = {
      policy: "reboot-offline",
      node: "node_1",
      state: "pending",
      clearMs: 0,
      since: SAMPLES_START_MS,
    } as const;
    const config = configured([...night, { kind: "timer", row: { ...timer, trueMs: 4 * MINUTE } }]);
    const { code, out, err } = await run("node_1", { config });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(paragraph(out, "reboot-offline")).toEqual([
      "reboot-offline",
      "  read      node.status = offline",
      "            node.last_seen = 20m old",
      "            (when decided; observed 2026-11-21 03:00:00 UTC)",
      "  timer     pending for 4m of 15m, since 2026-11-21 03:00:00 UTC",
      "  episode   ep-1: waiting since 2026-11-21 03:15:00 UTC",
      "            opened 2026-11-21 03:15:00 UTC",
      "            at step 2 of 2 (forced reboot), 1 sent",
      "  decision  hold on step 2, 2026-11-21 03:15:00 UTC, mode enforce",
      "            - window: outside nights, which begins at 23:00",
      "            - max_actions: 6 of 6 actions within 1h",
    ]);
    expect(paragraph(out, "actions").filter((line) => line.includes("act-"))).toHaveLength(2);
  });

  test("with an episode's quarantine and retry, and actions in doubt or of a dry run", async () => {
    const quarantine = {
      action: "act-2",
      endsAt: SAMPLES_START_MS + 1_440 * MINUTE,
      seen: true,
      seenOnline: 0,
      overdue: true,
    };
    const retryAt = SAMPLES_START_MS + 17 * MINUTE;
    const config = configured([
      { kind: "episode", row: { ...episode, state: "quarantined", dryRun: true, failures: 2, retryAt, quarantine } },
      { kind: "action", row: { ...verifiedAction, state: "sent", outcome: null, inDoubt: true, endedAt: null } },
      { kind: "action", row: { ...verifiedAction, id: "act-5", dryRun: true, outcome: "dry_run", proof: null } },
    ]);
    const { out } = await run("node_1", { config });
    expect(paragraph(out, "reboot-offline")).toEqual(
      expect.arrayContaining([
        "  episode   ep-1 (dry run): quarantined since 2026-11-21 03:15:00 UTC",
        "            at step 2 of 2 (forced reboot), 1 would have been sent, 2 failed attempts",
        "            waits until 2026-11-21 03:17:00 UTC",
        "            quarantine (act-2) ends 2026-11-22 03:00:00 UTC, overdue",
      ]),
    );
    expect(out).toContain("    in doubt, being verified");
    expect(out).toContain("no clear response: the outcome is determined by observation");
    expect(out).toContain("dry run: not sent");
  });

  test("with an episode that has no step left", async () => {
    const config = configured([{ kind: "episode", row: { ...episode, state: "given_up", step: 2, acted: 3 } }]);
    expect(paragraph((await run("node_1", { config })).out, "reboot-offline")).toContain(
      "            after the last step, 3 sent",
    );
  });

  test("at a past time, without later decisions", async () => {
    const later = { ...heldDecision, at: SAMPLES_START_MS + 50 * MINUTE, verdict: "act", blockers: [] } as const;
    const config = configured([...night, { kind: "decision", row: later }]);
    const { out: now } = await run("node_1", { config });
    expect(now).toContain("decision  act on step 2, 2026-11-21 03:50:00 UTC");
    const { out: then } = await run("node_1", { config, at: SAMPLES_START_MS + 40 * MINUTE });
    expect(then).toContain("decision  hold on step 2, 2026-11-21 03:15:00 UTC");
    expect(then).not.toContain("03:50");
    const { out: before } = await run("node_1", { config, at: SAMPLES_START_MS });
    expect(before).toBe(`node_1, at 2026-11-21 03:00:00 UTC
  source    the journal; verdicts, timers and ended holds of the past are not kept
  policies  none had applied to this node by that time
  journal   has no records up to that time: the node was healthy, did not exist, or the journal is newer

no actions

no decisions
`);
  });

  test("without holds that have ended, unless they were in force at the given time", async () => {
    const at = SAMPLES_START_MS;
    const hold = { node: "node_1", at, until: at + 60 * MINUTE, reason: "alice holds it" } as const;
    const config = configured([
      { kind: "hold", row: { ...hold, policy: null, kind: "held" } },
      { kind: "hold", row: { ...hold, policy: "reboot-offline", kind: "given_up", until: null, reason: "2 failures" } },
    ]);
    const heldLines = async (options: Partial<ExplainOptions>) =>
      (await run("node_1", { config, ...options })).out.split("\n").filter((line) => / for \S.* since /.test(line));
    const givenUp = "given_up for reboot-offline since 2026-11-21 03:00:00 UTC, until it is released: 2 failures";
    expect(await heldLines({})).toEqual([`  held      ${givenUp}`]);
    expect(await heldLines({ at: at + 30 * MINUTE })).toHaveLength(2);
    const ownership = { at, until: at + 75 * MINUTE, reason: "it was rebooted, but not by the daemon" };
    const rebooted = configured([{ kind: "hold", row: { ...hold, policy: null, kind: "held", ownership } }]);
    expect(await heldLines({ config: rebooted, at: at + 70 * MINUTE })).toEqual([
      expect.stringMatching(/^ {2}held {6}ownership for every policy .*: it was rebooted, but not by the daemon$/),
    ]);
  });

  test("without the secrets of the daemon", async () => {
    const config = configured(night, CONFIG.replace("sesame", `"\${NO_SUCH_VARIABLE}"`));
    expect(await run("node_1", { config })).toMatchObject({ code: 0, err: "" });
  });

  test("and reports that it has no records of a node", async () => {
    const { code, out } = await run("node_7", { config: configured(night) });
    expect(code).toBe(0);
    expect(paragraph(out, "node_7").at(-1)).toBe(
      "  journal   has no records: the node was healthy as far back as the journal goes, or does not exist",
    );
    expect(paragraph(out, "reboot-offline")).toContain("  timer     inactive");
  });

  test("but not if an operator has held the node", async () => {
    const hold = {
      node: "node_7",
      policy: null,
      kind: "held",
      at: SAMPLES_START_MS,
      until: null,
      reason: "x",
    } as const;
    const { out } = await run("node_7", { config: configured([{ kind: "hold", row: hold }]) });
    expect(paragraph(out, "node_7")).toEqual([
      expect.stringMatching(/^node_7, at /),
      "  held      held for every policy since 2026-11-21 03:00:00 UTC, until it is released: x",
      expect.stringMatching(/^ {2}source /),
    ]);
  });

  test("and that the journal has no names of nodes", async () => {
    const { out } = await run("lax-0047", { config: configured(night) });
    expect(paragraph(out, "lax-0047").at(-1)).toBe(
      "  journal   has no records: it has only ids of nodes, not names; find the id with npm start -- nodes --search",
    );
  });

  test("and lists the newest decisions; JSON has all of them", async () => {
    const many = Array.from({ length: 14 }, (_, index): JournalChange => {
      return { kind: "decision", row: { ...heldDecision, at: SAMPLES_START_MS + index * MINUTE } };
    });
    const config = configured(many);
    expect(paragraph((await run("node_1", { config })).out, "decisions")).toHaveLength(12);
    expect((await run("node_1", { config })).out).toContain("  and 4 earlier: see --output json");
    const { decisions, source } = JSON.parse((await run("node_1", { config, output: "json" })).out);
    expect({ source, decisions: decisions.length }).toEqual({ source: "journal", decisions: 14 });
  });

  test("and exits with 1 if there is none or the configuration is invalid, with each problem on a line", async () => {
    const folder = createTempFolder();
    folder.write("policies.yaml", POLICIES);
    const config = folder.write("proxywarden.yaml", CONFIG);
    expect(await run("node_1", { config })).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(/^proxywarden: .*state holds no journal; .*\n$/),
    });
    folder.write("proxywarden.yaml", CONFIG.replace("usage_scale: ratio", "usage_scael: ratio"));
    expect((await run("node_1", { config })).err).toMatch(/^proxywarden: .*:1:\d+: service\.usage_scael: unknown key/);
  });
});
