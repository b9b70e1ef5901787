import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../src/base/random.ts";
import { NETWORK_FAMILIES } from "../../../src/metrics/families/network-families.ts";
import { LineWriter } from "../../../src/metrics/render/line-writer.ts";
import { NetworkRenderer } from "../../../src/metrics/render/renderer.ts";
import { NODE_STATUSES, type NodeLabel } from "../../../src/model/node.ts";
import type { Fleet, SessionSummary } from "../../../src/model/snapshot.ts";
import { propertyRuns } from "../../harness/run-length.ts";
import { referenceRender, render, textOf } from "../naive-renderer.ts";
import {
  buildFleet,
  buildSessions,
  type NodeFixture,
  renderInput,
  type SessionNodeFixture,
  STALE_AFTER_MS,
} from "../snapshot-fixtures.ts";

const label = fc.oneof(
  fc.constantFrom("", "eu", "DE", 'we"ird\na', "back\\slash", "\\n", "Zürich", "日本", "🛰", "\u0000", "other"),
  fc.string({ maxLength: 12 }),
);
const value = fc.oneof(
  fc.integer({ min: 0, max: 1_200 }),
  fc.integer({ min: 0, max: 10_000 }).map((share) => share / 10_000),
  fc.double(),
  fc.constantFrom(1_763_700_000_123, 9_999, 10_000, 1e-9, 1e21, Number.MAX_VALUE, -1),
);
const optionally = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 4 });

const node: fc.Arbitrary<NodeFixture> = fc
  .record({
    name: optionally(label),
    country: optionally(fc.constantFrom("DE", "FR")),
    region: optionally(label),
    version: optionally(label),
    status: fc.constantFrom(...NODE_STATUSES),
    lastSeenMs: optionally(value),
    uptimeHours: optionally(value),
    activeSessions: optionally(value),
    bandwidthGb: optionally(value),
    cpuUsage: optionally(value),
    memoryUsage: optionally(value),
    diskUsage: optionally(value),
    createdAtMs: optionally(value),
    updatedAtMs: optionally(value),
    listedAt: fc.constantFrom(0, 100_000, 200_000, 300_000),
    detailedAt: optionally(fc.constantFrom(0, 100_000, 200_000, 300_000)),
    detailedAtEpochMs: optionally(value),
  })
  .map((fixture) => ({ id: "", ...withoutUndefined(fixture) }));

const sessionNode: fc.Arbitrary<SessionNodeFixture> = fc.record({
  id: fc.constant(""),
  counts: fc.record({ active: value, error: value, unknown: fc.constantFrom(0, 0, 3) }),
  sentBytes: value,
  receivedBytes: value,
});

function withoutUndefined(fixture: Record<string, unknown>): Partial<NodeFixture> {
  return Object.fromEntries(Object.entries(fixture).filter(([, field]) => field !== undefined));
}

/** Possible changes between two renderings. */
interface RenderStep {
  /** New content of slots; null: empty. */
  readonly nodes: readonly (readonly [slot: number, node: NodeFixture | null])[];
  readonly sessions: readonly (readonly [slot: number, node: SessionNodeFixture | null])[];
  /** Prefix of the ids of new nodes. There are few, so that a freed slot is reused by the same node or by another. */
  readonly name: string;
  readonly slots: number;
  readonly now: number;
  readonly deny: readonly string[];
  readonly nodeLabels: readonly NodeLabel[];
  readonly failedListed: boolean;
}

const SLOTS_MAX = 12;
const slot = fc.nat({ max: SLOTS_MAX - 1 });
const step: fc.Arbitrary<RenderStep> = fc.record({
  nodes: fc.array(fc.tuple(slot, fc.option(node, { nil: null, freq: 5 })), { maxLength: 8 }),
  sessions: fc.array(fc.tuple(slot, fc.option(sessionNode, { nil: null, freq: 5 })), { maxLength: 4 }),
  name: fc.oneof(fc.constantFrom("a", "b"), label),
  slots: fc.integer({ min: 0, max: SLOTS_MAX }),
  now: fc.constantFrom(0, 100_000, 300_000, 400_000),
  deny: fc.subarray(["proxynet_node_info", "proxynet_node_status", "proxynet_session_sent_bytes_total"], {
    maxLength: 1,
  }),
  nodeLabels: fc.constantFrom<(readonly NodeLabel[])[]>(["name", "region"], ["name", "region"], ["version"], []),
  failedListed: fc.boolean(),
});

/** Yields the input after each step. */
function* inputsOf(steps: readonly RenderStep[]) {
  const nodes: (NodeFixture | null)[] = Array(SLOTS_MAX).fill(null);
  const sessions: (SessionNodeFixture | null)[] = Array(SLOTS_MAX).fill(null);
  let summary: SessionSummary | null = null;
  for (const { slots, now, deny, nodeLabels, failedListed, ...changes } of steps) {
    // The slot is part of the id: no two nodes have the same.
    for (const [at, one] of changes.nodes) nodes[at] = one && { ...one, id: `${changes.name}${at}` };
    for (const [at, one] of changes.sessions) sessions[at] = one && { ...one, id: `${changes.name}${at}` };
    // As in a daemon, snapshots share the sessions until there are new ones.
    if (changes.sessions.length > 0 || failedListed !== summary?.failedListed)
      summary = buildSessions(sessions, { failedListed });
    const snapshot = { fleet: buildFleet(nodes.slice(0, slots)), sessions: summary };
    yield renderInput(snapshot, { now, options: { deny: new Set(deny), nodeLabels: [...nodeLabels] } });
  }
}

describe("an exposition", () => {
  test("has the same bytes as a naive rendering, in both formats", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
        const renderer = new NetworkRenderer();
        for (const input of inputsOf(steps)) {
          const exposition = render(renderer, input);
          expect(textOf(exposition)).toBe(referenceRender(input));
          expect(textOf(exposition, "openmetrics")).toBe(referenceRender(input, "openmetrics"));
          expect(exposition.series).toBe(textOf(exposition).match(/^[^#]/gm)?.length ?? 0);
        }
      }),
      propertyRuns(300),
    );
  });

  test("has the same bytes over several chunks, while nodes join, leave and change", () => {
    const random = seededRandom(7);
    const renderer = new NetworkRenderer();
    const nodes: (NodeFixture | null)[] = [];
    for (const [round, slots] of [5_000, 5_000, 4_200, 4_200, 9_000, 1_000].entries()) {
      nodes.length = Math.min(nodes.length, slots);
      for (let at = 0; at < slots; at++) {
        if (at < nodes.length && random() < 0.7) continue;
        const uptimeHours = Math.floor(10 ** (random() * 4));
        nodes[at] =
          random() < 0.1
            ? null
            : { id: `node_${at}${random() < 0.1 ? "x" : ""}`, uptimeHours, cpuUsage: random(), detailedAt: 0 };
      }
      const input = renderInput({ fleet: buildFleet(nodes) }, { now: round });
      const text = textOf(render(renderer, input));
      // toBe would take a long time to print the difference of two large texts.
      expect(text === referenceRender(input), `round ${round}`).toBe(true);
    }
  });

  test("stays the same while later ones are created", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 2, maxLength: 6 }), (steps) => {
        const renderer = new NetworkRenderer();
        const held = [...inputsOf(steps)].map((input) => ({
          exposition: render(renderer, input),
          text: referenceRender(input),
        }));
        for (const { exposition, text } of held) expect(textOf(exposition)).toBe(text);
      }),
    );
  });

  test("has the chunks of the previous one where no line changed", () => {
    const renderer = new NetworkRenderer();
    const nodes = [{ id: "node_1", uptimeHours: 5, activeSessions: 9 }];
    const before = render(renderer, renderInput({ fleet: buildFleet(nodes) }));
    const after = render(renderer, renderInput({ fleet: buildFleet([{ ...nodes[0]!, activeSessions: 10 }]) }));
    const changed = after.chunks.text.filter((chunk, index) => chunk !== before.chunks.text[index]);
    expect(changed.map((chunk) => Buffer.from(chunk.render(after.source!, new LineWriter())).toString())).toEqual([
      'proxynet_node_active_sessions{node_id="node_1"} 10\n',
    ]);
  });
});

test("a changed list of locations changes the labels of the nodes, even if the locations keep their indexes", () => {
  const renderer = new NetworkRenderer();
  const fleet = buildFleet([{ id: "node_1", region: "eu" }]);
  const shown = (shownFleet: Fleet) =>
    textOf(render(renderer, renderInput({ fleet: shownFleet }, { options: { nodeLabels: ["region"] } })));
  expect(shown(fleet)).toContain('region="eu"} 1');
  const moved = { ...fleet, locations: fleet.locations.map((location) => ({ ...location, region: "us" })) };
  expect(shown(moved)).toContain('proxynet_node_info{node_id="node_1",region="us"} 1');
});

test("an exposition that is still in use keeps no later snapshot in memory", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const renderer = new NetworkRenderer();
  const nodes = Array.from({ length: 10 }, (_, index) => ({ id: `node_${index}`, uptimeHours: 1, activeSessions: 1 }));
  const held = render(renderer, renderInput({ fleet: buildFleet(nodes) }));
  const later: WeakRef<Fleet>[] = [];
  for (let round = 0; round < 10; round++) {
    // Each round replaces the chunk of another family.
    Object.assign(nodes[0]!, round % 2 === 0 ? { uptimeHours: round } : { activeSessions: round });
    const fleet = buildFleet(nodes);
    later.push(new WeakRef(fleet));
    render(renderer, renderInput({ fleet }));
  }
  // Optimized code may keep an object in a register until it runs again.
  for (let turn = 0; turn < 5; turn++) {
    render(renderer, renderInput({ fleet: buildFleet(nodes) }));
    await setImmediate();
    collectGarbage();
  }
  expect(later.filter((fleet) => fleet.deref() !== undefined).length).toBeLessThanOrEqual(2);
  expect(textOf(held)).toContain('proxynet_node_uptime_seconds{node_id="node_0"} 3600');
});

describe("series_max", () => {
  const fleet = buildFleet(Array.from({ length: 10 }, (_, index) => ({ id: `node_${index}`, uptimeHours: index })));

  test("drops whole families, largest first, until the rest fits, and names them", () => {
    const exposition = render(new NetworkRenderer(), renderInput({ fleet }, { options: { seriesMax: 26 } }));
    // Six samples per node for the status, one for the info, one for the uptime; and six for the only location.
    expect(exposition.droppedFamilies).toEqual(["proxynet_node_status"]);
    expect(textOf(exposition)).not.toContain("proxynet_node_status");
    expect(textOf(exposition)).toContain("proxynet_node_uptime_seconds");
    expect(exposition.series).toBe(26);
  });

  test("drops nothing if all families fit", () => {
    expect(render(new NetworkRenderer(), renderInput({ fleet })).droppedFamilies).toEqual([]);
  });

  test("exports a dropped family again when it fits", () => {
    const renderer = new NetworkRenderer();
    render(renderer, renderInput({ fleet }));
    render(renderer, renderInput({ fleet }, { options: { seriesMax: 0 } }));
    const input = renderInput({ fleet });
    expect(textOf(render(renderer, input))).toBe(referenceRender(input));
  });
});

test("yields between chunks, so that a large fleet does not block the event loop", () => {
  const fleet = buildFleet(Array.from({ length: 10_000 }, (_, index) => ({ id: `node_${index}`, uptimeHours: index })));
  const steps = [...new NetworkRenderer().refresh(renderInput({ fleet }))];
  expect(steps.length).toBeGreaterThan(30);
});

test("yields while it renders the counts of many locations", () => {
  const nodes = Array.from({ length: 1_000 }, (_, index) => ({
    id: `node_${index}`,
    region: `r${index}`,
    listedAt: 0,
  }));
  const deny = new Set(NETWORK_FAMILIES.map(({ name }) => name).filter((name) => name !== "proxynet_nodes"));
  const stepsFor = (fleet: Fleet) =>
    [...new NetworkRenderer().refresh(renderInput({ fleet }, { options: { deny } }))].length;
  // Each location has a line per status.
  expect(stepsFor(buildFleet(nodes)) - stepsFor(buildFleet(nodes.slice(0, 1)))).toBeGreaterThanOrEqual(25);
});

test("exports a sample up to the age limit, and not after", () => {
  const renderer = new NetworkRenderer();
  const fleet = buildFleet([{ id: "node_1", listedAt: 0, uptimeHours: 1 }]);
  const shown = (now: number) => textOf(render(renderer, renderInput({ fleet }, { now }))).includes("uptime");
  expect(shown(STALE_AFTER_MS)).toBe(true);
  expect(shown(STALE_AFTER_MS + 1)).toBe(false);
});
