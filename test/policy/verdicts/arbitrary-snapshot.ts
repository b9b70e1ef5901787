import fc from "fast-check";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { buildFleet, buildSessions, type NodeFixture } from "../../metrics/snapshot-fixtures.ts";

/** Possible knowledge of a daemon about some nodes: complete or not, fresh or not, valid or not. */
export interface SampledFleet {
  readonly nodes: readonly NodeFixture[];
  readonly sessions: {
    readonly observedFrom: number;
    readonly failedListed: boolean;
    readonly byNode: readonly {
      readonly id: string;
      readonly counts: Readonly<Record<string, number>>;
      readonly quietWalks: number;
    }[];
  } | null;
  readonly usageKnown: boolean;
  readonly settledAt: number | null;
  /** How far the service's clock is ahead of the monotonic one, or null if unknown. */
  readonly skewMs: number | null;
}

export const NOW = 10_000_000;
/** A different limit for each source, so that a mix-up shows. */
export const MAX_AGES: Readonly<Record<string, number>> = { nodes: 300_000, details: 900_000, sessions: 200_000 };
export const SKEW_MS = Date.parse("2026-03-01T12:00:00Z");

/** In an odd world one datum of so many is lacking: an expression names several. */
const GAP_EVERY = 15;

/** Age of a datum, which in an odd world may be around its limit or far beyond it. */
function dataAge(source: string, withGaps: boolean): fc.Arbitrary<number> {
  const max = MAX_AGES[source]!;
  const fresh = fc.constantFrom(0, max - 1, max);
  const stale = fc.constantFrom(max + 1, 20 * max);
  return withGaps ? fc.oneof({ arbitrary: fresh, weight: 8 }, { arbitrary: stale, weight: 1 }) : fresh;
}

/** A value, which an odd world may lack. */
const maybeMissing = <T>(values: fc.Arbitrary<T>, withGaps: boolean) =>
  withGaps ? fc.option(values, { freq: GAP_EVERY, nil: undefined }) : values;

const counts = fc.constantFrom(0, 1, 2, 5);
const shares = fc.constantFrom(0, 0.25, 0.5, 0.75, 1);

function nodesOf(withGaps: boolean) {
  const statuses = withGaps ? NODE_STATUSES : NODE_STATUSES.slice(0, -1);
  const node = fc.record({
    listedAge: dataAge("nodes", withGaps),
    detailedAge: maybeMissing(dataAge("details", withGaps), withGaps),
    // In milliseconds before the observation. A negative one is in the future.
    seenAge: fc.constantFrom(0, 30_000, 600_000, 600_001, -60_000, ...(withGaps ? [-60_001] : [])),
    createdAge: fc.constantFrom(1_000_000, 5_400_000, ...(withGaps ? [-60_001] : [])),
    lastSeen: maybeMissing(fc.constant(true), withGaps),
    sketch: fc.record({
      name: maybeMissing(fc.constantFrom("a", "b", "ab", "ba"), withGaps),
      country: maybeMissing(fc.constantFrom("DE", "FR"), withGaps),
      region: maybeMissing(fc.constantFrom("a", "b"), withGaps),
      version: maybeMissing(fc.constantFrom("a", "1.9", "1.10"), withGaps),
      status: fc.constantFrom(...statuses),
      uptimeHours: maybeMissing(counts, withGaps),
      activeSessions: maybeMissing(counts, withGaps),
      bandwidthGb: maybeMissing(fc.oneof(counts, fc.constantFrom(0.5, 1e308)), withGaps),
      cpuUsage: maybeMissing(shares, withGaps),
      memoryUsage: maybeMissing(shares, withGaps),
      diskUsage: maybeMissing(shares, withGaps),
    }),
  });
  return fc.array(node, { minLength: 1, maxLength: 5 }).map((drawn) =>
    drawn.map(({ listedAge, detailedAge, seenAge, createdAge, lastSeen, sketch }, index): NodeFixture => {
      const listedAt = NOW - listedAge;
      const detailedAt = detailedAge === undefined ? undefined : NOW - detailedAge;
      const created = detailedAt === undefined ? undefined : SKEW_MS + detailedAt - createdAge;
      return withoutUndefined({
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
function withoutUndefined(sketch: { readonly [K in keyof NodeFixture]: NodeFixture[K] | undefined }): NodeFixture {
  return Object.fromEntries(
    Object.entries(sketch).filter(([, value]) => value !== undefined),
  ) as unknown as NodeFixture;
}

function sessionsIn(withGaps: boolean) {
  const row = fc.record({
    active: counts,
    connecting: counts,
    closed: counts,
    error: counts,
    timeout: counts,
    unknown: withGaps ? fc.constantFrom(0, 0, 0, 1) : fc.constant(0),
    quietWalks: withGaps ? fc.constantFrom(0, 0, 0, 1, 3) : fc.constant(0),
  });
  const view = fc
    .record({
      age: dataAge("sessions", withGaps),
      failedListed: withGaps ? fc.boolean() : fc.constant(true),
      rows: fc.array(row, { maxLength: 5 }),
    })
    .map(({ age, failedListed, rows }) => ({
      observedFrom: NOW - age,
      failedListed,
      byNode: rows.map(({ quietWalks, ...columns }, index) => ({ id: `node_${index}`, counts: columns, quietWalks })),
    }));
  return withGaps ? fc.option(view, { freq: GAP_EVERY }) : view;
}

/** Worlds in which everything is known and fresh, or odd ones. */
export const sampledFleets = (withGaps: boolean): fc.Arbitrary<SampledFleet> =>
  fc.record({
    nodes: nodesOf(withGaps),
    sessions: sessionsIn(withGaps),
    usageKnown: withGaps ? fc.constantFrom(true, true, true, true, true, false) : fc.constant(true),
    settledAt: withGaps
      ? fc.option(
          dataAge("nodes", true).map((age) => NOW - age),
          { freq: GAP_EVERY },
        )
      : dataAge("nodes", false).map((age) => NOW - age),
    skewMs: withGaps ? fc.option(fc.constant(SKEW_MS), { freq: GAP_EVERY }) : fc.constant(SKEW_MS),
  });

/** The world as the daemon holds it. */
export function snapshotOf({ nodes, sessions, usageKnown, settledAt }: SampledFleet): Snapshot {
  return {
    sequence: 1,
    at: NOW,
    fleet: { ...buildFleet([null, ...nodes], settledAt), usageKnown },
    sessions:
      sessions === null
        ? null
        : buildSessions([...sessions.byNode].reverse(), {
            observedFrom: sessions.observedFrom,
            failedListed: sessions.failedListed,
          }),
    stats: null,
    hourly: null,
  };
}
