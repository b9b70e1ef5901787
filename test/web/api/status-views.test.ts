import { expect, test } from "vitest";
import { byName } from "../../../src/base/by-name.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import { COLLECTORS } from "../../../src/model/snapshot.ts";
import { nodesView, nodeView } from "../../../src/web/api/node-views.ts";
import type { StatusSnapshot } from "../../../src/web/api/status-views.ts";
import { budgetView, statusLine, statusView } from "../../../src/web/api/status-views.ts";
import { startVirtualDaemon, statusSnapshotOf, stopVirtualDaemon } from "../../harness/daemon/virtual-daemon.ts";
import { buildFleet } from "../fleet-fixture.ts";

const MINUTE = 60_000;

/** Passes the state of the daemon after some time with 40 nodes to `see`. */
async function snapshotAfter(ms: number, see: (statusSnapshot: StatusSnapshot) => void): Promise<void> {
  const daemon = await startVirtualDaemon({ scenario: { nodes: 40, sessions: 200 } });
  await daemon.clock.advance(ms);
  see(statusSnapshotOf(daemon));
  await stopVirtualDaemon(daemon);
}

test("before the first walk every view is empty", async () => {
  await snapshotAfter(0, (statusSnapshot) => {
    expect(statusView(statusSnapshot)).toMatchObject({
      version: "1.2.3",
      sessions: null,
      nodes_complete: false,
      usage_known: false,
    });
    expect(statusLine(statusSnapshot)).toBe("the fleet is not known yet");
    expect(runAtOnce(nodesView(statusSnapshot, {}))).toEqual({
      data: [],
      complete: false,
      pagination: { page: 1, limit: 100, total: 0 },
    });
    expect(nodeView(statusSnapshot, "node_1")).toBeNull();
  });
});

test("the number of nodes is unknown until the list has been read, even if it is empty", async () => {
  await snapshotAfter(5 * MINUTE, (statusSnapshot) => {
    const nodesOf = (walkedAt: number | null) => {
      const snapshot = { ...statusSnapshot.snapshot!, fleet: { ...buildFleet([]), walkedAt } };
      return statusView({ ...statusSnapshot, snapshot }).nodes;
    };
    expect(nodesOf(null)).toBeNull();
    expect(nodesOf(statusSnapshot.monotonic)).toMatchObject({ total: 0, online: 0 });
  });
});

test("the status shows the plan, the age and the failure of each collector", async () => {
  await snapshotAfter(20 * MINUTE, (statusSnapshot) => {
    const status = statusView(statusSnapshot) as { nodes: { total: number }; collectors: Record<string, unknown> };
    expect(status.nodes.total).toBe(40);
    expect(status.collectors.nodes).toMatchObject({
      planned: {
        requested_interval_seconds: 60,
        interval_seconds: 60,
        slowdown: 1,
        bound_by: null,
        calls_per_minute: expect.closeTo(1, 1),
      },
      complete: true,
      failure: null,
    });
    expect(statusLine(statusSnapshot)).toMatch(/^40 nodes: \d+ online/);
  });
});

test("nodes are paged in the order of ids, and filtered by status, location and part of a name", async () => {
  await snapshotAfter(5 * MINUTE, (statusSnapshot) => {
    const all = runAtOnce(nodesView(statusSnapshot, {})).data;
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted());
    const second = runAtOnce(nodesView(statusSnapshot, { page: "2", limit: "15" }));
    expect(second.data).toEqual(all.slice(15, 30));
    const { country, name } = all[7]!;
    const there = runAtOnce(nodesView(statusSnapshot, { country: country!.toLowerCase() }));
    expect(there.data).toEqual(all.filter((node) => node.country === country));
    expect(runAtOnce(nodesView(statusSnapshot, { q: name!.toUpperCase() })).data).toContainEqual(all[7]);
    const { id, name: exact } = all[7]!;
    for (const node of [id!, exact!]) expect(runAtOnce(nodesView(statusSnapshot, { node })).data).toEqual([all[7]]);
    expect(runAtOnce(nodesView(statusSnapshot, { node: id!.slice(0, -1) })).data).toEqual([]);
    const online = runAtOnce(nodesView(statusSnapshot, { status: "online" }));
    expect(online.pagination.total).toBe(all.filter(({ status }) => status === "online").length);
  });
});

test("a node has its details, their age and its sessions", async () => {
  await snapshotAfter(20 * MINUTE, (statusSnapshot) => {
    const id = statusSnapshot.snapshot!.fleet.ids[3]!;
    const node = nodeView(statusSnapshot, id) as Record<string, unknown>;
    expect(node).toMatchObject({
      id,
      created_at: expect.stringMatching(/^20\d\d-.*Z$/),
      sessions: { active: expect.any(Number) },
    });
    expect(node.cpu_usage_ratio).toBeGreaterThanOrEqual(0);
    expect(node.detail_age_seconds).toBeLessThan(16 * 60);
    expect(statusView(statusSnapshot).collectors.details.nodes_read).toBe(40);
    expect(statusView(statusSnapshot).collectors.nodes.nodes_read).toBeNull();
    expect(nodeView(statusSnapshot, "")).toBeNull();
  });
});

test("nothing delays the next poll of a daemon that polls nothing", async () => {
  await snapshotAfter(5 * MINUTE, (statusSnapshot) => {
    const { ledger } = statusSnapshot;
    ledger.monthUsed = ledger.limits.plan.callsPerMonth!;
    const nextPoll = (snapshot: typeof statusSnapshot) => budgetView(snapshot).categories.node_management.next_poll;
    expect(nextPoll(statusSnapshot)).toEqual({ in_seconds: null, held_by: "month" });
    const plan = byName(COLLECTORS, () => null);
    expect(nextPoll({ ...statusSnapshot, plan })).toEqual({ in_seconds: null, held_by: null });
  });
});

test("the budget shows stated limits, remaining calls and the next poll", async () => {
  await snapshotAfter(20 * MINUTE, (statusSnapshot) => {
    expect(budgetView(statusSnapshot)).toMatchObject({
      reserve: 0.2,
      categories: {
        node_management: {
          configured: { requests: 100, burst: 200, window_seconds: 60 },
          stated: { limit: 100 },
          consecutive_refusals: 0,
          external_usage: { calls: 0, expected_per_window: 0 },
        },
      },
      plan: { requests_per_minute: 500, concurrent_requests: 50, external_usage: { calls: 0, expected_per_minute: 0 } },
      month: { started_at: "2026-03-01T00:00:00.000Z", ends_at: "2026-04-01T00:00:00.000Z", calls_limit: 1_000_000 },
    });
  });
});
