import fc from "fast-check";
import { NODE_STATUSES } from "../../src/model/node.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { fleetOf, type NodeSketch, sessionsOf } from "../metrics/snapshot-fixtures.ts";

/** What a daemon may know of some nodes at one moment: complete or not, fresh or not, odd or not. */
export interface World {
  readonly nodes: readonly NodeSketch[];
  readonly sessions: {
    readonly settledAt: number;
    readonly failedListed: boolean;
    readonly byNode: readonly {
      readonly id: string;
      readonly counts: Readonly<Record<string, number>>;
      readonly quietWalks: number;
    }[];
  } | null;
  readonly usageKnown: boolean;
  readonly settledAt: number | null;
  /** How far the service's clock is ahead of the monotonic one; null: nobody knows. */
  readonly skewMs: number | null;
}

export const NOW = 10_000_000;
/** A different limit for each source, so that a mix-up shows. */
export const MAX_AGES: Readonly<Record<string, number>> = { nodes: 300_000, details: 900_000, sessions: 200_000 };
export const SKEW_MS = Date.parse("2026-03-01T12:00:00Z");

/** In an odd world one datum of so many is lacking: an expression names several. */
const HOLE_EVERY = 15;

/** A datum's age: fresh, or, in an odd world, around its limit and far beyond it. */
function ages(source: string, odd: boolean): fc.Arbitrary<number> {
  const max = MAX_AGES[source]!;
  const fresh = fc.constantFrom(0, max - 1, max);
  const stale = fc.constantFrom(max + 1, 20 * max);
  return odd ? fc.oneof({ arbitrary: fresh, weight: 8 }, { arbitrary: stale, weight: 1 }) : fresh;
}

/** A value, which an odd world may lack. */
const maybe = <T>(values: fc.Arbitrary<T>, odd: boolean) =>
  odd ? fc.option(values, { freq: HOLE_EVERY, nil: undefined }) : values;

const counts = fc.constantFrom(0, 1, 2, 5);
const shares = fc.constantFrom(0, 0.25, 0.5, 0.75, 1);

function nodesOf(odd: boolean) {
  const statuses = odd ? NODE_STATUSES : NODE_STATUSES.slice(0, -1);
  const node = fc.record({
    listedAge: ages("nodes", odd),
    detailedAge: maybe(ages("details", odd), odd),
    // In milliseconds before the observation; a negative one lies in the future.
    seenAge: fc.constantFrom(0, 30_000, 600_000, 600_001, -60_000, ...(odd ? [-60_001] : [])),
    createdAge: fc.constantFrom(1_000_000, 5_400_000, ...(odd ? [-60_001] : [])),
    lastSeen: maybe(fc.constant(true), odd),
    sketch: fc.record({
      name: maybe(fc.constantFrom("a", "b", "ab", "ba"), odd),
      country: maybe(fc.constantFrom("DE", "FR"), odd),
      region: maybe(fc.constantFrom("a", "b"), odd),
      version: maybe(fc.constantFrom("a", "1.9", "1.10"), odd),
      status: fc.constantFrom(...statuses),
      uptimeHours: maybe(counts, odd),
      activeSessions: maybe(counts, odd),
      bandwidthGb: maybe(fc.oneof(counts, fc.constantFrom(0.5, 1e308)), odd),
      cpuUsage: maybe(shares, odd),
      memoryUsage: maybe(shares, odd),
      diskUsage: maybe(shares, odd),
    }),
  });
  return fc.array(node, { minLength: 1, maxLength: 5 }).map((drawn) =>
    drawn.map(({ listedAge, detailedAge, seenAge, createdAge, lastSeen, sketch }, index): NodeSketch => {
      const listedAt = NOW - listedAge;
      const detailedAt = detailedAge === undefined ? undefined : NOW - detailedAge;
      const created = detailedAt === undefined ? undefined : SKEW_MS + detailedAt - createdAge;
      return present({
        ...sketch,
        id: `node_${index}`,
        listedAt,
        detailedAt,
        lastSeenMs: lastSeen ? SKEW_MS + listedAt - seenAge : undefined,
        createdAtMs: created,
        updatedAtMs: created,
      });
    }),
  );
}

/** Leaves out what is undefined: a sketch has it or has not. */
function present(sketch: { readonly [K in keyof NodeSketch]: NodeSketch[K] | undefined }): NodeSketch {
  return Object.fromEntries(Object.entries(sketch).filter(([, value]) => value !== undefined)) as unknown as NodeSketch;
}

function sessionsIn(odd: boolean) {
  const row = fc.record({
    active: counts,
    connecting: counts,
    closed: counts,
    error: counts,
    timeout: counts,
    unknown: odd ? fc.constantFrom(0, 0, 0, 1) : fc.constant(0),
    quietWalks: odd ? fc.constantFrom(0, 0, 0, 1, 3) : fc.constant(0),
  });
  const view = fc
    .record({
      age: ages("sessions", odd),
      failedListed: odd ? fc.boolean() : fc.constant(true),
      rows: fc.array(row, { maxLength: 5 }),
    })
    .map(({ age, failedListed, rows }) => ({
      settledAt: NOW - age,
      failedListed,
      byNode: rows.map(({ quietWalks, ...columns }, index) => ({ id: `node_${index}`, counts: columns, quietWalks })),
    }));
  return odd ? fc.option(view, { freq: HOLE_EVERY }) : view;
}

/** Worlds in which everything is known and fresh, or odd ones. */
export const worlds = (odd: boolean): fc.Arbitrary<World> =>
  fc.record({
    nodes: nodesOf(odd),
    sessions: sessionsIn(odd),
    usageKnown: odd ? fc.constantFrom(true, true, true, true, true, false) : fc.constant(true),
    settledAt: odd
      ? fc.option(
          ages("nodes", true).map((age) => NOW - age),
          { freq: HOLE_EVERY },
        )
      : ages("nodes", false).map((age) => NOW - age),
    skewMs: odd ? fc.option(fc.constant(SKEW_MS), { freq: HOLE_EVERY }) : fc.constant(SKEW_MS),
  });

/** The world as the daemon holds it. */
export function snapshotOf({ nodes, sessions, usageKnown, settledAt }: World): Snapshot {
  return {
    sequence: 1,
    at: NOW,
    fleet: { ...fleetOf([null, ...nodes], settledAt), usageKnown },
    sessions:
      sessions === null
        ? null
        : sessionsOf([...sessions.byNode].reverse(), {
            settledAt: sessions.settledAt,
            failedListed: sessions.failedListed,
          }),
    stats: null,
    hourly: null,
  };
}
