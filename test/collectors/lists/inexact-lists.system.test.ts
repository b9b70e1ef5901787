import { beforeAll, describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { type Fault, type ListOptions, NODE_ORDERS, type ServiceOptions } from "../../../src/config/schema/scenario.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario, defaultServiceOptions } from "../../../src/simulator/default-scenarios.ts";
import { createService, rateLimitedCount, replyCounts } from "../../../src/simulator/http/service.ts";
import { listsOnlySettings } from "../../harness/daemon/quiet-network.ts";
import {
  createPlanLimits,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
  type VirtualDaemonOptions,
} from "../../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { actualNodes, membershipChangesOf } from "../../harness/simulator/actual-state.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";

const { nodeList, sessionList } = defaultServiceOptions;

type NodeOrdering = ServiceOptions["nodeList"]["order"];
type ListChoice = Partial<Omit<ListOptions<string>, "order">>;

/** A network with the given list options. */
function networkOf(
  { nodes = 180, sessions = 200 },
  { list = {}, order = "joined", faults = [] }: { list?: ListChoice; order?: NodeOrdering; faults?: readonly Fault[] },
  everyMs = Number.POSITIVE_INFINITY,
): VirtualDaemonOptions {
  return {
    scenario: {
      nodes,
      sessions,
      faults,
      churn: { ...defaultScenario.churn, joinEveryMs: everyMs, leaveEveryMs: everyMs },
      service: {
        ...defaultServiceOptions,
        nodeList: { ...nodeList, ...list, order },
        sessionList: { ...sessionList, ...list },
      },
    },
    settings: { pageLimit: 50 },
  };
}

/** Runs a daemon for a while on virtual time and stops it. */
async function run(options: VirtualDaemonOptions, forMs: number): Promise<VirtualDaemon> {
  const daemon = await startVirtualDaemon(options);
  await daemon.clock.advance(forMs);
  await stopVirtualDaemon(daemon);
  return daemon;
}

/** Does the same without collecting anything but the list of nodes. */
const runNodeLists = (options: VirtualDaemonOptions, forMs: number): Promise<VirtualDaemon> =>
  run({ ...options, settings: { ...options.settings, ...listsOnlySettings } }, forMs);

/** Share of the node walks that were complete. */
function completeShare({ service, snapshots }: VirtualDaemon, pages: number): number {
  const lists = replyCounts(service).filter(({ endpoint }) => endpoint === "GET /v1/nodes");
  const walks = lists.reduce((sum, { count }) => sum + count, 0) / pages;
  return snapshots.last!.fleet.lastWalk!.completeWalks / walks;
}

/** Counts nodes that only the daemon has, and nodes that only the service has. */
function unknownNodes({ service, snapshots }: VirtualDaemon): { extra: number; unseen: number } {
  const known = new Set(snapshots.last!.fleet.ids.filter((id) => id !== ""));
  const truth = new Set([...actualNodes(service)].map(({ id }) => id));
  return {
    extra: [...known].filter((id) => !truth.has(id)).length,
    unseen: [...truth].filter((id) => !known.has(id)).length,
  };
}

const always = (fault: Fault["fault"], match: string): Fault => ({ afterMs: 0, forMs: 1_000 * HOUR_MS, match, fault });

const inexact: readonly (readonly [string, Parameters<typeof networkOf>[1]])[] = [
  ["counts one record too many", { list: { totalOffBy: 1 } }],
  ["counts one record too few", { list: { totalOffBy: -1 } }],
  ["shows one id twice", { faults: [always({ kind: "duplicates", records: 1 }, "GET /v1/nodes")] }],
  [
    "shows one id twice and counts it once",
    { list: { totalOffBy: -1 }, faults: [always({ kind: "duplicates", records: 1 }, "GET /v1/nodes")] },
  ],
];

describe("a list that", () => {
  const readFor = 30 * MINUTE_MS;
  const callsOf = ({ service }: VirtualDaemon) => replyCounts(service).reduce((sum, { count }) => sum + count, 0);
  let exactCalls = 0;

  beforeAll(async () => {
    exactCalls = callsOf(await run(networkOf({}, {}), readFor));
  });

  test.each(inexact)("%s is read completely, accepted, and takes no more calls than an exact one", async (_, list) => {
    const daemon = await run(networkOf({}, list), readFor);
    expect(unknownNodes(daemon)).toEqual({ extra: 0, unseen: 0 });
    expect(daemon.collectorManager.collectorHealth().nodes).toMatchObject({ complete: true, failure: null });
    expect(daemon.snapshots.last!.fleet.lastWalk!.completeWalks).toBeGreaterThan(25);
    expect(callsOf(daemon)).toBeLessThan(exactCalls * 1.1);
    expect(replyCounts(daemon.service).filter(({ status }) => Number(status) >= 400)).toEqual([]);
  });
});

describe("a list that changes while it is walked", () => {
  const CHANGING_MS = isLongRun ? HOUR_MS : HOUR_MS / 2;
  // Each field, every second one descending; and newest first.
  const orders: readonly NodeOrdering[] = [
    ...(isLongRun ? NODE_ORDERS.map((field, index) => (index % 2 === 0 ? field : (`-${field}` as const))) : []),
    "status",
    "-created_at",
    "-last_seen",
  ];

  test.each(orders)("in the order of %s is known except for changes of the last minutes", async (order) => {
    const daemon = await runNodeLists(networkOf({ nodes: 300, sessions: 100 }, { order }, 30_000), CHANGING_MS);
    const { lastWalk } = daemon.snapshots.last!.fleet;
    expect(lastWalk!.completeWalks).toBeGreaterThan((5 / 6) * (CHANGING_MS / MINUTE_MS));
    const moves = membershipChangesOf(daemon.service).filter(
      ({ at }) => at > daemon.clock.now() - 5 * MINUTE_MS,
    ).length;
    const { extra, unseen } = unknownNodes(daemon);
    expect(extra + unseen).toBeLessThanOrEqual(moves);
    expect(rateLimitedCount(daemon.service)).toBe(0);
  });

  test("of a hundred pages, newest first, is complete in nearly every walk, and vanished nodes are removed", async () => {
    const { scenario } = networkOf({ nodes: 1_000, sessions: 100 }, { order: "-created_at" }, 40_000);
    const daemon = await runNodeLists({ scenario: scenario!, settings: { pageLimit: 10 } }, CHANGING_MS);
    expect(completeShare(daemon, 100)).toBeGreaterThan(0.9);
    const { extra, unseen } = unknownNodes(daemon);
    expect(extra + unseen).toBeLessThan(20);
  });

  test("with a total that lags by a minute is complete", async () => {
    const daemon = await runNodeLists(networkOf({}, { list: { totalLagMs: MINUTE_MS } }, 30_000), CHANGING_MS);
    expect(daemon.snapshots.last!.fleet.lastWalk!.completeWalks).toBeGreaterThan((3 / 4) * (CHANGING_MS / MINUTE_MS));
  });
});

describe("a service that shows only the first records", () => {
  const first = (recordsMax: number) => networkOf({ nodes: 100, sessions: 1_500 }, { list: { recordsMax } });

  test("has its sessions exported as incomplete", async () => {
    const daemon = await run(first(1_000), 10 * MINUTE_MS);
    const { sessions } = daemon.snapshots.last!;
    expect(sessions!.counts.reduce((sum, count) => sum + count, 0)).toBe(1_000);
    expect(sessions!.complete).toBe(false);
    const { failure } = daemon.collectorManager.collectorHealth().sessions;
    expect(failure).toMatchObject({ kind: "incomplete", message: expect.stringContaining("only the first 1000 of") });
    const page = await daemon.metrics.render("text");
    expect(page).toMatch(/proxywarden_collect_complete\{collector="sessions"\} 0/);
    expect(page).toMatch(/proxywarden_collect_completeness_ratio\{collector="sessions"\} 0\.[67]/);
  });

  test("has its nodes published but not trusted", async () => {
    const daemon = await run(first(50), 10 * MINUTE_MS);
    const { fleet } = daemon.snapshots.last!;
    expect(fleet.count).toBe(50);
    expect(fleet.walkedAt).not.toBeNull();
    expect(fleet.lastWalk).toMatchObject({ complete: false, completeWalks: 0, missing: 50 });
  });
});

describe("a large list of sessions that come and go during each walk", () => {
  const SESSIONS = isLongRun ? 10_000 : 3_000;
  /** A walk takes fifteen seconds for each thousand sessions. */
  const MINUTES = isLongRun ? 25 : 4;
  const WALKS_MIN = isLongRun ? 7 : 3;

  /** Returns whether each walk was complete. */
  async function completeWalks(list: Partial<ServiceOptions["sessionList"]>, faults: readonly Fault[] = []) {
    const service = { ...defaultServiceOptions, sessionList: { ...sessionList, ...list } };
    const daemon = await startVirtualDaemon({
      scenario: { nodes: 50, sessions: SESSIONS, service, faults },
      settings: { limits: createPlanLimits("enterprise"), pageLimit: 10 },
    });
    const walks = new Map<number, boolean>();
    for (let minute = 0; minute < MINUTES; minute++) {
      await daemon.clock.advance(MINUTE_MS);
      const { sessions } = daemon.snapshots.last!;
      if (sessions !== null) walks.set(sessions.settledAt, sessions.complete);
    }
    await stopVirtualDaemon(daemon);
    expect(walks.size).toBeGreaterThanOrEqual(WALKS_MIN);
    return [...walks.values()];
  }

  test("is complete in nearly every walk, newest first", async () => {
    const walks = await completeWalks({ order: "-started_at" });
    // The first walk does not know yet how long it takes.
    expect(walks.slice(1)).not.toContain(false);
  });

  test("is incomplete if 4% of its pages fail", async () => {
    const failing = Array.from({ length: SESSIONS / 250 }, (_, index) => `GET /v1/sessions?page=${(index + 1) * 24}&`);
    const faults = failing.map((match) => always({ kind: "status", status: 500 }, match));
    expect(await completeWalks({ order: "started_at" }, faults)).not.toContain(true);
  });

  test("is incomplete if the service shows only the first records", async () => {
    const walks = await completeWalks({ order: "-started_at", recordsMax: 0.94 * SESSIONS });
    expect(walks.slice(0, 3)).toEqual([false, false, false]);
  });
});

test.each([0, -5, 5])(
  "a total of the sessions that is 8% too high is not explained by sessions that start, if the service states no Date and the wall clock is off by %i h",
  async (hours) => {
    const clock = createVirtualClock(START_MS);
    const { scenario } = networkOf({ nodes: 50, sessions: 1_000 }, { list: { totalOffBy: 80 } });
    const service = createService({ ...defaultScenario, ...scenario }, START_MS);
    const simulated = createSimulatedTransport(service, clock, { latencyMs: 50 });
    const withoutDate: Transport = {
      ...simulated,
      async request(request, signal) {
        const sent = await simulated.request(request, signal);
        if (!sent.ok) return sent;
        const { date: _, ...headers } = sent.value.headers;
        return { ok: true, value: { ...sent.value, headers } };
      },
    };
    clock.stepWallClock(hours * HOUR_MS);
    const daemon = await run({ clock, service, transport: withoutDate }, 10 * MINUTE_MS);
    expect(daemon.snapshots.last!.sessions!.complete).toBe(false);
  },
);

describe("a wrong total", () => {
  const starter = { limits: createPlanLimits("starter"), pageLimit: 100 };
  const callsInThreeHours = async (options: VirtualDaemonOptions) =>
    (await run({ ...options, settings: { ...options.settings, ...starter } }, 3 * HOUR_MS)).rateLimiter.monthUsed();

  test.each([
    ["a billion", networkOf({ nodes: 50, sessions: 50 }, { list: { totalFixed: 1e9 } })],
    [
      "of a service that ignores the page number",
      networkOf(
        { nodes: 50, sessions: 150 },
        {
          faults: [
            always({ kind: "page_ignored", states: "first" }, "GET /v1/sessions?"),
            always({ kind: "page_ignored", states: "first" }, "GET /v1/nodes?"),
          ],
        },
      ),
    ],
  ])("%s costs no more than its share of the month", async (_, options) => {
    expect(await callsInThreeHours(options)).toBeLessThan((100_000 / 31 / 8) * 1.2);
  });

  test("that counts a single page hides no node", async () => {
    const daemon = await run(networkOf({}, { list: { totalCounts: "page" } }), 30 * MINUTE_MS);
    expect(unknownNodes(daemon)).toEqual({ extra: 0, unseen: 0 });
    // The list contradicts itself: it is exported, but no action is taken.
    expect(daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ complete: false });
  });
});
