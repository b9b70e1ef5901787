import { expect, test } from "vitest";
import { planMonth } from "../../../src/rate-limit/billing-month.ts";
import type { Scene } from "../../../src/web/api/status-views.ts";
import { budgetView, nodesView, nodeView, statusLine, statusView } from "../../../src/web/api/status-views.ts";
import { START_MS, startDaemon, stopDaemon } from "../../harness/virtual-daemon.ts";

const MINUTE = 60_000;
const everything = { page: 1, limit: 100, status: null, country: null, region: null, q: null } as const;

/** What the routes show after twenty minutes with a network of 40 nodes. */
async function sceneAfter(ms: number, see: (scene: Scene) => void): Promise<void> {
  const daemon = startDaemon({ scenario: { nodes: 40, sessions: 200 } });
  await daemon.clock.advance(ms);
  see({
    version: "1.2.3",
    startedAt: START_MS,
    now: daemon.clock.now(),
    monotonic: daemon.clock.monotonic(),
    snapshot: daemon.snapshots.last,
    plan: daemon.watch.plan(),
    collectors: daemon.watch.collectors(),
    ledger: daemon.office.ledger,
    month: planMonth(daemon.clock.now(), 1),
    clockSkewMs: null,
  });
  await stopDaemon(daemon);
}

test("before anything was seen every view is there, and says that nothing is known", async () => {
  await sceneAfter(0, (scene) => {
    expect(statusView(scene)).toMatchObject({ version: "1.2.3", sessions: null, usage_known: false });
    expect(statusLine(scene)).toBe("the fleet is not known yet");
    expect(nodesView(scene, everything)).toEqual({ data: [], pagination: { page: 1, limit: 100, total: 0 } });
    expect(nodeView(scene, "node_1")).toBeNull();
  });
});

test("the status says of each collector what is planned, how old its data are, and that nothing fails", async () => {
  await sceneAfter(20 * MINUTE, (scene) => {
    const status = statusView(scene) as { nodes: { total: number }; collectors: Record<string, unknown> };
    expect(status.nodes.total).toBe(40);
    expect(status.collectors.nodes).toMatchObject({
      planned: { wish_seconds: 60, interval_seconds: 60, stretch: 1, bound_by: null, calls_per_minute: 1 },
      complete: true,
      failure: null,
    });
    expect(statusLine(scene)).toMatch(/^40 nodes: \d+ online/);
  });
});

test("nodes are given in the order of ids, page by page, and found by status, place and part of a name", async () => {
  await sceneAfter(5 * MINUTE, (scene) => {
    type Page = {
      data: { id: string; name: string; country: string; status: string }[];
      pagination: { total: number };
    };
    const all = (nodesView(scene, everything) as Page).data;
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted());
    const second = nodesView(scene, { ...everything, page: 2, limit: 15 }) as Page;
    expect(second.data).toEqual(all.slice(15, 30));
    const { country, name } = all[7]!;
    const there = nodesView(scene, { ...everything, country }) as Page;
    expect(there.data).toEqual(all.filter((node) => node.country === country));
    expect((nodesView(scene, { ...everything, q: name.toUpperCase() }) as Page).data).toContainEqual(all[7]);
    const online = nodesView(scene, { ...everything, status: "online" }) as Page;
    expect(online.pagination.total).toBe(all.filter(({ status }) => status === "online").length);
  });
});

test("one node shows its detail with its age, and its sessions", async () => {
  await sceneAfter(20 * MINUTE, (scene) => {
    const id = scene.snapshot!.fleet.ids[3]!;
    const node = nodeView(scene, id) as Record<string, unknown>;
    expect(node).toMatchObject({
      id,
      created_at: expect.stringMatching(/^20\d\d-.*Z$/),
      sessions: { active: expect.any(Number) },
    });
    expect(node.cpu_usage_ratio).toBeGreaterThanOrEqual(0);
    expect(node.detail_age_seconds).toBeLessThan(16 * 60);
    expect(nodeView(scene, "")).toBeNull();
  });
});

test("the budget says what was stated, what is left at least, and what the next poll waits for", async () => {
  await sceneAfter(20 * MINUTE, (scene) => {
    expect(budgetView(scene)).toMatchObject({
      reserve: 0.2,
      categories: {
        node_management: {
          configured: { requests: 100, burst: 200, window_seconds: 60 },
          stated: { limit: 100 },
          consecutive_refusals: 0,
          others: { calls: 0, expected_per_window: 0 },
        },
      },
      plan: { requests_per_minute: 500, concurrent_requests: 50, others: { calls: 0, expected_per_minute: 0 } },
      month: { started_at: "2026-03-01T00:00:00.000Z", ends_at: "2026-04-01T00:00:00.000Z", calls_limit: 1_000_000 },
    });
  });
});
