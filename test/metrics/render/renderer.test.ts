import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../src/base/random.ts";
import { type Exposition, releaseExposition } from "../../../src/metrics/render/exposition.ts";
import { createRenderer } from "../../../src/metrics/render/renderer.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import { render, renderPlainly, textOf } from "../naive-renderer.ts";
import { fleetOf, inputOf, type NodeSketch, type SessionNodeSketch, STALE_AFTER_MS, sessionsOf } from "../snapshot-fixtures.ts";

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
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 4 });

const node: fc.Arbitrary<NodeSketch> = fc
  .record({
    name: maybe(label),
    country: maybe(fc.constantFrom("DE", "FR")),
    region: maybe(label),
    version: maybe(label),
    status: fc.constantFrom(...NODE_STATUSES),
    lastSeenMs: maybe(value),
    uptimeHours: maybe(value),
    activeSessions: maybe(value),
    bandwidthGb: maybe(value),
    cpuUsage: maybe(value),
    memoryUsage: maybe(value),
    diskUsage: maybe(value),
    createdAtMs: maybe(value),
    updatedAtMs: maybe(value),
    listedAt: fc.constantFrom(0, 100_000, 200_000, 300_000),
    detailedAt: maybe(fc.constantFrom(0, 100_000, 200_000, 300_000)),
    detailedAtEpochMs: maybe(value),
  })
  .map((sketch) => ({ id: "", ...definedOf(sketch) }));

const sessionNode: fc.Arbitrary<SessionNodeSketch> = fc.record({
  id: fc.constant(""),
  counts: fc.record({ active: value, error: value, unknown: fc.constantFrom(0, 0, 3) }),
  sentBytes: value,
  receivedBytes: value,
});

function definedOf(sketch: Record<string, unknown>): Partial<NodeSketch> {
  return Object.fromEntries(Object.entries(sketch).filter(([, field]) => field !== undefined));
}

/** What may happen between two renderings. */
interface Step {
  /** By slot what is there from now on; null: nobody. */
  readonly nodes: readonly (readonly [slot: number, node: NodeSketch | null])[];
  readonly sessions: readonly (readonly [slot: number, node: SessionNodeSketch | null])[];
  /** Which of a few names the newcomers bear, so that slots are left, and taken again by the same and by others. */
  readonly name: string;
  readonly slots: number;
  readonly now: number;
  readonly deny: readonly string[];
  readonly nodeLabels: readonly ("name" | "region" | "version")[];
  readonly failedListed: boolean;
}

const SLOTS_MAX = 12;
const slot = fc.nat({ max: SLOTS_MAX - 1 });
const step: fc.Arbitrary<Step> = fc.record({
  nodes: fc.array(fc.tuple(slot, fc.option(node, { nil: null, freq: 5 })), { maxLength: 8 }),
  sessions: fc.array(fc.tuple(slot, fc.option(sessionNode, { nil: null, freq: 5 })), { maxLength: 4 }),
  name: fc.oneof(fc.constantFrom("a", "b"), label),
  slots: fc.integer({ min: 0, max: SLOTS_MAX }),
  now: fc.constantFrom(0, 100_000, 300_000, 400_000),
  deny: fc.subarray(["proxynet_node_info", "proxynet_node_status", "proxynet_session_sent_bytes_total"], {
    maxLength: 1,
  }),
  nodeLabels: fc.constantFrom(["name", "region"] as const, ["name", "region"] as const, ["version"] as const, []),
  failedListed: fc.boolean(),
});

/** The inputs that a course of steps leads to. */
function* inputsOf(steps: readonly Step[]) {
  const nodes: (NodeSketch | null)[] = Array(SLOTS_MAX).fill(null);
  const sessions: (SessionNodeSketch | null)[] = Array(SLOTS_MAX).fill(null);
  for (const { slots, now, deny, nodeLabels, failedListed, ...changes } of steps) {
    // The slot is part of the id: no two nodes have the same.
    for (const [at, one] of changes.nodes) nodes[at] = one && { ...one, id: `${changes.name}${at}` };
    for (const [at, one] of changes.sessions) sessions[at] = one && { ...one, id: `${changes.name}${at}` };
    const snapshot = { fleet: fleetOf(nodes.slice(0, slots)), sessions: sessionsOf(sessions, { failedListed }) };
    yield inputOf(snapshot, { now, options: { deny: new Set(deny), nodeLabels } });
  }
}

describe("rendering what changed", () => {
  test("gives byte for byte what rendering from nothing gives, in both formats", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
        const renderer = createRenderer();
        let last: Exposition | null = null;
        for (const [index, input] of [...inputsOf(steps)].entries()) {
          // Now and then it is released first: then bytes are written over, otherwise they are copied.
          if (last !== null && index % 3 > 0) releaseExposition(last);
          const exposition = render(renderer, input);
          if (last !== null && index % 3 === 0) releaseExposition(last);
          expect(textOf(exposition)).toBe(renderPlainly(input));
          expect(textOf(exposition, "openmetrics")).toBe(renderPlainly(input, "openmetrics"));
          expect(exposition.series).toBe(textOf(exposition).match(/^[^#]/gm)?.length ?? 0);
          last = exposition;
        }
      }),
      { numRuns: 300 },
    );
  });

  test("does so over several segments, while nodes come, go and change", () => {
    const random = seededRandom(7);
    const renderer = createRenderer();
    const nodes: (NodeSketch | null)[] = [];
    let last: Exposition | null = null;
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
      const input = inputOf({ fleet: fleetOf(nodes) }, { now: round });
      if (last !== null) releaseExposition(last);
      last = render(renderer, input);
      // Not toBe: the difference of two megabytes takes long to print.
      expect(textOf(last) === renderPlainly(input), `round ${round}`).toBe(true);
    }
  });

  test("keeps an exposition as it was for as long as it is held, through whatever is rendered meanwhile", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 2, maxLength: 6 }), (steps) => {
        const renderer = createRenderer();
        const held = [...inputsOf(steps)].map((input) => ({
          exposition: render(renderer, input),
          text: renderPlainly(input),
        }));
        for (const { exposition, text } of held) {
          expect(textOf(exposition)).toBe(text);
          releaseExposition(exposition);
        }
      }),
    );
  });

  test("leaves the bytes of a family that did not change where they are", () => {
    const renderer = createRenderer();
    const nodes = [{ id: "node_1", uptimeHours: 5, activeSessions: 9 }];
    const before = render(renderer, inputOf({ fleet: fleetOf(nodes) }));
    const after = render(renderer, inputOf({ fleet: fleetOf([{ ...nodes[0]!, activeSessions: 10 }]) }));
    const changed = after.pieces.text.filter((piece, index) => piece !== before.pieces.text[index]);
    expect(changed.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual([
      'proxynet_node_active_sessions{node_id="node_1"} 10\n',
    ]);
  });

  test("writes over bytes that nobody holds, and over no others", () => {
    const renderer = createRenderer();
    const input = (uptimeHours: number) => inputOf({ fleet: fleetOf([{ id: "node_1", uptimeHours }]) });
    const bytesOf = ({ pieces }: Exposition) =>
      pieces.text.map(({ bytes }) => bytes).find((bytes) => Buffer.from(bytes).includes("uptime_seconds{"))!;
    const held = render(renderer, input(1));
    const released = render(renderer, input(2));
    expect(bytesOf(released).buffer).not.toBe(bytesOf(held).buffer);
    releaseExposition(released);
    // As long as before, and longer: in place, and in memory that comes back.
    const next = render(renderer, input(1));
    expect(bytesOf(next).buffer).toBe(bytesOf(released).buffer);
    expect(textOf(next)).toBe(renderPlainly(input(1)));
    releaseExposition(next);
    const last = render(renderer, input(1_000));
    expect(textOf(last)).toBe(renderPlainly(input(1_000)));
    expect(textOf(held)).toBe(renderPlainly(input(1)));
  });
});

describe("series_max", () => {
  const fleet = fleetOf(Array.from({ length: 10 }, (_, index) => ({ id: `node_${index}`, uptimeHours: index })));

  test("drops the widest families whole until the rest fits, and names them", () => {
    const exposition = render(createRenderer(), inputOf({ fleet }, { options: { seriesMax: 26 } }));
    // Six a node, one a node, one a node, and six of the one place.
    expect(exposition.dropped).toEqual(["proxynet_node_status"]);
    expect(textOf(exposition)).not.toContain("proxynet_node_status");
    expect(textOf(exposition)).toContain("proxynet_node_uptime_seconds");
    expect(exposition.series).toBe(26);
  });

  test("drops nothing that fits", () => {
    expect(render(createRenderer(), inputOf({ fleet })).dropped).toEqual([]);
  });

  test("brings a dropped family back when there is room again", () => {
    const renderer = createRenderer();
    render(renderer, inputOf({ fleet }));
    render(renderer, inputOf({ fleet }, { options: { seriesMax: 0 } }));
    const input = inputOf({ fleet });
    expect(textOf(render(renderer, input))).toBe(renderPlainly(input));
  });
});

test("a rendering yields between segments, so that a large fleet does not hold up the loop", () => {
  const fleet = fleetOf(Array.from({ length: 10_000 }, (_, index) => ({ id: `node_${index}`, uptimeHours: index })));
  const steps = [...createRenderer().refresh(inputOf({ fleet }))];
  expect(steps.length).toBeGreaterThan(30);
});

test("a sample is shown up to the age limit, and not after", () => {
  const renderer = createRenderer();
  const fleet = fleetOf([{ id: "node_1", listedAt: 0, uptimeHours: 1 }]);
  const shown = (now: number) => textOf(render(renderer, inputOf({ fleet }, { now }))).includes("uptime");
  expect(shown(STALE_AFTER_MS)).toBe(true);
  expect(shown(STALE_AFTER_MS + 1)).toBe(false);
});
