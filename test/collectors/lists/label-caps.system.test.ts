import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import { createTopListCaps } from "../../../src/collectors/collected-state.ts";
import type { Fault } from "../../../src/config/schema/scenario.ts";
import { Inventory } from "../../../src/inventory/inventory.ts";
import { LabelCounts } from "../../../src/inventory/label-counts.ts";
import type { SessionTotals } from "../../../src/inventory/sessions/session-totals.ts";
import { NetworkRenderer } from "../../../src/metrics/render/renderer.ts";
import { LABEL_CAPS } from "../../../src/model/label-values.ts";
import type { SessionRecord, SessionStatistics } from "../../../src/model/session.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { everyMinuteSettings, startVirtualDaemon, stopVirtualDaemon } from "../../harness/daemon/virtual-daemon.ts";
import { record, walkSummary } from "../../inventory/inventory-fixtures.ts";
import { createWalks, session } from "../../inventory/sessions/session-walks.ts";
import { render, textOf } from "../../metrics/naive-renderer.ts";
import { renderInput } from "../../metrics/snapshot-fixtures.ts";

const SESSIONS = 12_000;
const NODES = 3_000;

const manyLabels: Fault = {
  afterMs: 0,
  forMs: Number.POSITIVE_INFINITY,
  fault: { kind: "many_labels", values: 100_000 },
};

/** Returns the label values of one family on the page of a snapshot. */
function valuesOn(page: string, family: string, label: string): string[] {
  const pattern = new RegExp(`^${family}\\{.*\\b${label}="([^"]*)"`, "gm");
  return [...new Set([...page.matchAll(pattern)].map(([, value]) => value!))];
}

const pageAt = (snapshot: Snapshot): string =>
  textOf(render(new NetworkRenderer(), renderInput(snapshot, { now: snapshot.at })));

test("a service with different labels in every record exhausts neither page nor memory", async () => {
  const scenario = { nodes: NODES, sessions: SESSIONS, faults: [manyLabels] };
  const schedules = { ...everyMinuteSettings.schedules, details: null };
  const daemon = await startVirtualDaemon({ scenario, settings: { schedules } });
  await daemon.clock.advance(2.5 * MINUTE_MS);
  const snapshot = daemon.snapshots.last!;
  const page = pageAt(snapshot);
  const families = [
    ["proxynet_nodes", "region", LABEL_CAPS.proxynet_nodes.values + 1],
    ["proxynet_country_sessions", "country", LABEL_CAPS.proxynet_country_sessions.values + 1],
    ["proxynet_node_sessions", "node_id", LABEL_CAPS.proxynet_node_sessions.values + 1],
    ["proxynet_customer_sessions", "customer_id", 21],
    ["proxynet_stats_country_sessions", "country", LABEL_CAPS.proxynet_stats_country_sessions.values + 1],
    ["proxynet_stats_protocol_sessions", "protocol", LABEL_CAPS.proxynet_stats_protocol_sessions.values + 1],
  ] as const;
  const counts = families.map(([family, label]) => valuesOn(page, family, label).length);
  families.forEach(([, , cap], index) => {
    // A value that is no longer listed keeps its series until the end of the next walk.
    expect(counts[index]).toBeGreaterThan(0.9 * cap);
    expect(counts[index]).toBeLessThanOrEqual(cap);
  });
  for (const [family, label] of families) expect(valuesOn(page, family, label)).toContain("other");
  // Records without a series of their own are counted under other.
  const inCountries = [...snapshot.sessions!.countries.values()].reduce((sum, count) => sum + count, 0);
  expect(inCountries).toBe(snapshot.sessions!.counts.reduce((sum, count) => sum + count, 0));
  expect(page.length).toBeLessThan(6_000_000);
  const own = await daemon.metrics.render("text");
  for (const [family] of families.filter(([family]) => family !== "proxynet_customer_sessions")) {
    expect(own).toMatch(new RegExp(`^proxywarden_labels_folded_total\\{family="${family}"\\} [1-9]`, "m"));
  }
  await stopVirtualDaemon(daemon);
});

test("nodes of further locations are counted under other, also if a location has that name", () => {
  const { values: cap } = LABEL_CAPS.proxynet_nodes;
  const inventory = new Inventory("ratio");
  const regions = ["other", ...Array.from({ length: cap + 9 }, (_, index) => `region_${index}`)];
  for (const region of regions) inventory.recordListed(record(`in ${region}`, { country: "other", region }), 0);
  inventory.endWalk(walkSummary(regions.length), 0);
  const page = textOf(render(new NetworkRenderer(), renderInput({ fleet: inventory.currentFleet() })));
  const online = [...page.matchAll(/^proxynet_nodes\{status="online".*region="([^"]*)"\} (\d+)$/gm)];
  const counts = new Map(online.map(([, region, nodes]) => [region, Number(nodes)]));
  expect(online).toHaveLength(cap);
  expect(counts.get("region_0")).toBe(1);
  expect(counts.get("other")).toBe(regions.length - (cap - 1));
});

test("a value that has its own series keeps it while it is listed, regardless of the order", () => {
  const folded: number[] = [];
  const counts = new LabelCounts("proxynet_country_sessions", (_, records) => void folded.push(records));
  const { values: cap } = LABEL_CAPS.proxynet_country_sessions;
  const names = (first: number, last: number) =>
    Array.from({ length: last - first }, (_, index) => `c${first + index}`);
  const read = (values: readonly string[]) => {
    counts.begin();
    for (const value of values) counts.add(value, 1);
    return runAtOnce(counts.finish());
  };
  const first = read(names(0, cap));
  expect(first.size).toBe(cap);
  const reversed = read(names(0, 2 * cap).reverse());
  expect([...reversed.keys()].toSorted()).toEqual([...first.keys(), "other"].toSorted());
  expect(reversed.get("other")).toBe(cap);
  // Half of the values are gone, which frees their series for the next read.
  const half = read(names(cap / 2, 2 * cap));
  expect(half.size).toBe(cap / 2 + 1);
  const later = read(names(cap / 2, 2 * cap).reverse());
  expect(later.size).toBe(cap + 1);
  for (const value of half.keys()) expect(later.has(value)).toBe(true);
  expect(folded).toEqual([cap, cap, cap / 2]);
});

test("an unfinished read frees no series, and a value named other is counted under other", () => {
  const counts = new LabelCounts("proxynet_stats_protocol_sessions", () => {});
  counts.add("a", 2);
  counts.add("other", 3);
  expect([...runAtOnce(counts.finish())]).toEqual([
    ["a", 2],
    ["other", 3],
  ]);
  counts.add("b", 1);
  counts.begin();
  expect([...runAtOnce(counts.finish())]).toEqual([]);
});

describe("nodes named by sessions", () => {
  const { values: cap } = LABEL_CAPS.proxynet_node_sessions;
  const onMany = (nodes: number, more: Partial<SessionRecord> = {}) =>
    Array.from({ length: nodes }, (_, index) => session(`s${index}`, { nodeId: `node_${index}`, ...more }));
  const idsIn = (fold: SessionTotals) => fold.view()!.nodes.ids.filter((id) => id !== "");

  test("have series of their own if they are in the fleet, others up to the cap; bytes are counted alike", () => {
    let folded = 0;
    const { fold, walk, bytes } = createWalks(false, {
      isKnownNode: (id) => id.startsWith("node_9"),
      onFolded: (_, records) => {
        folded += records;
      },
    });
    const nodes = 2 * cap;
    walk(1_000, onMany(nodes));
    walk(2_000, onMany(nodes, { bytesSent: 101 }).reverse());
    const ids = idsIn(fold);
    const known = onMany(nodes).filter(({ nodeId }) => nodeId!.startsWith("node_9"));
    expect(known.length).toBeGreaterThan(1_000);
    for (const { nodeId } of known) expect(ids).toContain(nodeId);
    expect(ids).toHaveLength(known.length + cap + 1);
    expect(bytes("node_0")).toEqual([1, 0]);
    expect(bytes("other")).toEqual([nodes - known.length - cap, 0]);
    expect(folded).toBe(nodes - known.length - cap);
  });

  test("all have series of their own until the node list was complete once", () => {
    let isFleetKnown = false;
    const { fold, walk } = createWalks(false, {
      isKnownNode: (id) => isFleetKnown && id.startsWith("node_9"),
      isFleetKnown: () => isFleetKnown,
    });
    const nodes = 2 * cap;
    walk(1_000, onMany(nodes));
    expect(idsIn(fold)).toHaveLength(nodes);
    expect(fold.view()!.nodes.isFolded).toBe(false);
    isFleetKnown = true;
    const known = onMany(nodes).filter(({ nodeId }) => nodeId!.startsWith("node_9")).length;
    for (const at of [2_000, 3_000]) {
      walk(at, onMany(nodes));
      expect(idsIn(fold)).toHaveLength(known + cap + 1);
      const { ids, counts, recent, isFolded } = fold.view()!.nodes;
      for (const columns of [counts, recent]) {
        expect(columns[0]![ids.indexOf("other")]).toBe(nodes - known - cap);
        expect(Array.from(columns[0]!).reduce((sum, each) => sum + each, 0)).toBe(nodes);
      }
      // No session of a node of the fleet is counted under `other`.
      expect(isFolded).toBe(false);
    }
  });

  test("free their series when their sessions are gone", () => {
    const { fold, walk } = createWalks();
    walk(1_000, onMany(cap));
    walk(2_000, [session("late", { nodeId: "node_late" })]);
    expect(idsIn(fold)).toEqual(["other"]);
    walk(3_000, [session("late", { nodeId: "node_late" })]);
    expect(idsIn(fold)).toEqual(["node_late"]);
  });

  test("are never counted under a node of the fleet named other", () => {
    const { fold, walk, bytes } = createWalks(false, { isKnownNode: (id) => id === "other" });
    const all = (bytesSent: number) => [
      ...onMany(cap + 10, { bytesSent }),
      session("own", { nodeId: "other", bytesSent }),
    ];
    walk(1_000, all(100));
    walk(2_000, all(107));
    expect(bytes("other")).toEqual([7, 0]);
    expect(fold.view()!.nodes.counts[0]![fold.view()!.nodes.ids.indexOf("other")]).toBe(1);
  });
});

test("a top list adds up repeated values, and counts values beyond the cap under other", () => {
  const stats: SessionStatistics = {
    activeSessions: 1,
    sessionsToday: 1,
    bandwidthTodayGb: 1,
    peakConcurrentSessions: 1,
    averageDurationSeconds: 1,
    topCountries: [
      ["DE", 3],
      ["FR", 2],
      ["DE", 4],
    ],
    topProtocols: Array.from({ length: 1_000 }, (_, index) => [`p${index}`, 1] as const),
  };
  const capped = createTopListCaps(() => {})(stats);
  expect(capped.topCountries).toEqual([
    ["DE", 7],
    ["FR", 2],
  ]);
  expect(capped.topProtocols).toHaveLength(301);
  expect(capped.topProtocols.at(-1)).toEqual(["other", 700]);
});
