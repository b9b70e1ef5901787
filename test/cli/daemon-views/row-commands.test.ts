import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../../src/base/duration.ts";
import type { Action } from "../../../src/model/remediation/episode.ts";
import {
  heldDecision,
  idleRemediation,
  idleStatus,
  SAMPLES_START_MS,
  sampleRemediation,
  verifiedAction,
} from "../../web/api/remediation-view-fixture.ts";
import { buildFleet } from "../../web/fleet-fixture.ts";
import { startTestServer } from "../../web/http/test-server.ts";
import { runInProcess } from "../terminal.ts";

const MINUTE = 60_000;

const fleet = buildFleet([
  { id: "node_1", region: "eu-west" },
  { id: "node_2", region: "us-east" },
]);

describe("decisions and actions", () => {
  /** A minute apart, newest first, on both nodes in turn. */
  const decisions = Array.from({ length: 2_500 }, (_, index) => ({
    ...heldDecision,
    at: heldDecision.at - index * MINUTE,
    node: index % 50 === 49 ? "node_2" : "node_1",
  }));
  const startJournalServer = () =>
    startTestServer({
      fleet: () => fleet,
      remediation: () => ({
        ...sampleRemediation(),
        decisions: async ({ node, until = Number.POSITIVE_INFINITY, limit }) =>
          decisions.filter((row) => row.at <= until && (node ?? row.node) === row.node).slice(0, limit),
        actions: async () => [verifiedAction],
      }),
    });

  test("decisions shows the latest ones with the names of their nodes", async () => {
    const { url } = await startJournalServer();
    expect(await runInProcess("decisions", "--url", url, "--limit", "1")).toEqual({
      code: 0,
      err: "",
      out: `time                     node                     policy          step  mode     verdict  reasons
2026-11-21 03:15:00 UTC  name of node_1 (node_1)  reboot-offline  2     enforce  hold     window, max_actions
`,
    });
  });

  test("decisions of a region or a node are found among those of others, and --since leaves out older ones", async () => {
    const { url } = await startJournalServer();
    const nodesOf = async (...args: readonly string[]) => {
      const { out } = await runInProcess("decisions", "--url", url, "--output", "json", ...args);
      return (JSON.parse(out) as { node: string }[]).map(({ node }) => node);
    };
    expect(await nodesOf("--region", "us-east", "--limit", "45")).toEqual(Array(45).fill("node_2"));
    expect(await nodesOf("--node", "name of node_2", "--limit", "3")).toEqual(Array(3).fill("node_2"));
    expect(await nodesOf("--country", "FR")).toEqual([]);
    expect(await nodesOf("--since", "2026-11-21T03:13:00Z")).toEqual(Array(3).fill("node_1"));
  });

  test("actions shows what was sent and its outcome", async () => {
    const { url } = await startJournalServer();
    const { out } = await runInProcess("actions", "--url", url);
    expect(out).toContain(
      "2026-11-21 03:20:01 UTC  act-2  name of node_1 (node_1)  eu-west  reboot-offline  2     forced reboot  verified  HTTP 200\n",
    );
    expect((await runInProcess("actions", "--url", url, "--region", "us-east")).out).toBe("no actions\n");
  });

  test("orders shows who gave which command, and its result", async () => {
    const given = { at: SAMPLES_START_MS, command: "hold", operator: "alice", node: "node_1", action: null } as const;
    const { url } = await startTestServer({
      remediation: () => ({
        ...idleRemediation,
        operatorCommands: async () => [
          { ...given, command: "pause", node: null, detail: "paused: a deploy" },
          { ...given, detail: "node_1 is held" },
        ],
      }),
    });
    expect((await runInProcess("orders", "--url", url)).out).toBe(
      `time                     command  operator  node    result
2026-11-21 03:00:00 UTC  pause    alice     -       paused: a deploy
2026-11-21 03:00:00 UTC  hold     alice     node_1  node_1 is held
`,
    );
  });

  test("actions are found by where the node was then, even at a daemon that knows no nodes", async () => {
    const { url } = await startTestServer({
      remediation: () => ({ ...idleRemediation, actions: async () => [verifiedAction] }),
    });
    const rowsOf = async (...args: readonly string[]) =>
      JSON.parse((await runInProcess("actions", "--url", url, "--output", "json", ...args)).out);
    expect(await rowsOf("--region", "eu-west", "--country", "de")).toMatchObject([{ id: "act-2" }]);
    expect(await rowsOf("--region", "us-east")).toEqual([]);
  });

  test("--since is a time on the daemon's clock, which may be far ahead of ours, as in the demo", async () => {
    const ahead = heldDecision.at + 365 * 24 * 60 * MINUTE;
    const { url } = await startTestServer({
      status: () => ({ now: new Date(ahead).toISOString() }),
      remediation: () => ({
        ...idleRemediation,
        decisions: async () => [{ ...heldDecision, at: ahead - 90 * MINUTE }],
      }),
    });
    const since = (time: string) => runInProcess("decisions", "--url", url, "--since", time);
    expect((await since("1h")).out).toBe("no decisions\n");
    expect((await since("2h")).out).toContain("reboot-offline");
    expect((await since(new Date(ahead - 91 * MINUTE).toISOString())).out).toContain("reboot-offline");
    expect(await since(new Date(ahead + MINUTE).toISOString())).toEqual({
      code: 1,
      out: "",
      err: "proxywarden: --since: it must be in the past; times without an offset such as +02:00 are UTC\n",
    });
  });

  test("--since compares the time that is shown", async () => {
    const { url } = await startJournalServer();
    const { createdAt, sentAt } = verifiedAction;
    expect(sentAt).toBeGreaterThan(createdAt);
    const since = (at: number) => runInProcess("actions", "--url", url, "--since", new Date(at).toISOString());
    expect((await since(sentAt!)).out).toContain("act-2");
    expect((await since(sentAt! + 1)).out).toBe("no actions\n");
  });

  test("actions are sorted by the time that is shown", async () => {
    const { createdAt } = verifiedAction;
    const late = {
      ...verifiedAction,
      id: "act-1",
      createdAt: createdAt - 60 * MINUTE,
      sentAt: createdAt + 60 * MINUTE,
    };
    const remediation = () => ({ ...idleRemediation, actions: async () => [verifiedAction, late] });
    const { url } = await startTestServer({ remediation, fleet: () => fleet });
    const { out } = await runInProcess("actions", "--url", url, "--output", "json");
    expect((JSON.parse(out) as { id: string }[]).map(({ id }) => id)).toEqual(["act-1", "act-2"]);
  });

  /** Starts a server with actions, newest first by the time at which they were recorded. */
  const startActionServer = (
    rows: () => readonly Action[],
    { approvalTtlMs }: { readonly approvalTtlMs: number } = idleStatus,
  ) =>
    startTestServer({
      fleet: () => fleet,
      remediation: () => ({
        ...idleRemediation,
        status: () => ({ ...idleStatus, approvalTtlMs }),
        actions: async ({ until = Number.POSITIVE_INFINITY, limit }) =>
          rows()
            .filter(({ createdAt }) => createdAt <= until)
            .slice(0, limit),
      }),
    });

  test("an action that was just sent is shown although many were recorded after it", async () => {
    const later = Array.from({ length: 30 }, (_, index) => ({ ...verifiedAction, id: `act-${100 - index}` }));
    const { createdAt } = verifiedAction;
    const late = { ...verifiedAction, id: "act-1", createdAt: createdAt - MINUTE, sentAt: createdAt + 60 * MINUTE };
    const { url } = await startActionServer(() => [...later, late]);
    const { out } = await runInProcess("actions", "--url", url, "--output", "json", "--limit", "2");
    expect((JSON.parse(out) as { id: string }[]).map(({ id }) => id)).toEqual(["act-1", "act-100"]);
  });

  test("an action that was just sent is shown although pages of others were recorded while it waited", async () => {
    let requests = 0;
    const { createdAt } = verifiedAction;
    const often = Array.from({ length: 4_000 }, (_, index) => ({
      ...verifiedAction,
      id: `act-${9_000 - index}`,
      createdAt: createdAt - index * 0.2 * MINUTE,
      sentAt: createdAt - index * 0.2 * MINUTE,
    }));
    const late = { ...verifiedAction, id: "act-1", createdAt: createdAt - 479 * MINUTE, sentAt: createdAt + MINUTE };
    const rows = [...often, late].toSorted((a, b) => b.createdAt - a.createdAt);
    const { url } = await startActionServer(() => {
      requests++;
      return rows;
    });
    const { out, err } = await runInProcess("actions", "--url", url, "--output", "json", "--limit", "2");
    expect((JSON.parse(out) as { id: string }[]).map(({ id }) => id)).toEqual(["act-1", "act-9000"]);
    expect(err).toBe("");
    expect(requests).toBe(3);
  });

  test("--since finds an action that waited for its approval for weeks, behind a page of later ones", async () => {
    const { createdAt } = verifiedAction;
    const later = Array.from({ length: 1_000 }, (_, index) => ({
      ...verifiedAction,
      id: `act-${2_000 - index}`,
      createdAt: createdAt - (index + 1) * 45 * MINUTE,
      sentAt: null,
    }));
    const late = { ...verifiedAction, id: "act-1", createdAt: createdAt - 59 * DAY_MS, sentAt: createdAt };
    const { url } = await startActionServer(() => [...later, late], { approvalTtlMs: 30 * DAY_MS });
    const { out, err } = await runInProcess("actions", "--url", url, "--since", new Date(createdAt).toISOString());
    expect(out.match(/act-\d+/g)).toEqual(["act-1"]);
    expect(err).toBe("");
  });

  test("an action whose state changes between two requests is shown once", async () => {
    let requests = 0;
    const rows = Array.from({ length: 1_002 }, (_, index) => ({
      ...verifiedAction,
      id: `act-${index}`,
      country: index === 0 ? "FR" : "DE",
      createdAt: verifiedAction.createdAt - index * MINUTE,
    }));
    const { url } = await startActionServer(() => {
      requests++;
      return rows.map((row) => ({ ...row, detail: `read in request ${requests}` }));
    });
    const args = ["--country", "DE", "--limit", "1000", "--output", "json"];
    const { out } = await runInProcess("actions", "--url", url, ...args);
    expect(requests).toBe(2);
    expect(new Set((JSON.parse(out) as { id: string }[]).map(({ id }) => id)).size).toBe(1_000);
  });

  test("the name of a node replaces its id in a detail that does not contain the name", async () => {
    const given = { at: SAMPLES_START_MS, command: "hold", operator: "alice", node: "node_1", action: null } as const;
    const { url } = await startTestServer({
      fleet: () => buildFleet([{ id: "node_1", name: "node_1.fra$&" }]),
      remediation: () => ({
        ...idleRemediation,
        operatorCommands: async () => [
          { ...given, detail: "node_1.fra$& is held" },
          { ...given, detail: "node_1 is held" },
        ],
      }),
    });
    const { out } = await runInProcess("orders", "--url", url);
    expect(out.match(/\S+ is held/g)).toEqual(["node_1.fra$&", "node_1.fra$&"].map((name) => `${name} is held`));
  });

  test("decisions of a region say that the daemon knows no nodes, and how many have an unknown location", async () => {
    const left = { ...heldDecision, node: "node_that_left" };
    const remediation = () => ({ ...idleRemediation, decisions: async () => [heldDecision, left] });
    const standby = await startTestServer({
      remediation,
      status: () => ({ leader: { is_this: false, name: "proxywarden-1", url: null } }),
    });
    expect(await runInProcess("decisions", "--url", standby.url, "--region", "eu-west")).toEqual({
      code: 1,
      out: "",
      err: "proxywarden: this daemon stands by and knows no nodes: ask the leader at proxywarden-1\n",
    });
    const { url } = await startTestServer({ remediation, fleet: () => fleet });
    const { out, err } = await runInProcess("decisions", "--url", url, "--region", "eu-west");
    expect(out.match(/node_\w+/g)).toEqual(["node_1", "node_1"]);
    expect(err).toBe(
      "proxywarden: 1 decision with an unknown location left out: nodes that left the fleet have none\n",
    );
  });

  test("a list says so if not all rows were searched", async () => {
    let requests = 0;
    const decisionsAt = (at: (index: number) => number, count: number) =>
      Array.from({ length: count }, (_, index) => ({
        ...heldDecision,
        at: at(index),
        node: `node_${1 + (index % 2)}`,
      }));
    const search = async (rows: readonly (typeof heldDecision)[], ...args: readonly string[]) => {
      const { url } = await startTestServer({
        fleet: () => fleet,
        remediation: () => ({
          ...idleRemediation,
          decisions: async ({ until = Number.POSITIVE_INFINITY, limit }) => {
            requests++;
            return rows.filter(({ at }) => at <= until).slice(0, limit);
          },
        }),
      });
      return runInProcess("decisions", "--url", url, "--output", "json", ...args);
    };
    const note =
      "proxywarden: not all rows were searched: there may be more decisions; use --since, --node or --policy\n";
    const many = decisionsAt((index) => heldDecision.at - index * MINUTE, 21_000);
    expect((await search(many, "--country", "FR")).err).toContain(note);
    expect(requests).toBe(20);
    // As many rows at one time as a page has, and an older one of the wanted country.
    const atOnce = [
      ...decisionsAt(() => heldDecision.at, 1_000).map((row) => ({ ...row, node: "node_1" })),
      { ...heldDecision, at: heldDecision.at - MINUTE, node: "node_2" },
    ];
    const { out, err } = await search(atOnce, "--region", "us-east");
    expect(JSON.parse(out)).toMatchObject([{ node: "node_2" }]);
    expect(err).toBe(note);
    expect((await search(many.slice(0, 5), "--node", "node_1")).err).toBe("");
  });
});
