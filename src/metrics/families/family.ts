import type { DurationMs } from "../../base/duration.ts";
import type { NumberColumn } from "../../base/number-column.ts";
import type { Config } from "../../config/schema/config.ts";
import type { NodeId } from "../../model/node.ts";
import type { Collector, Snapshot } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import type { FamilyHead, FamilyType } from "../text-format.ts";

/** Everything that a rendering depends on. */
export interface RenderInput {
  readonly snapshot: Snapshot;
  readonly now: MonotonicMs;
  /** The same time by the service's clock, for the hourly statistics. */
  readonly serviceNowMs: EpochMs;
  /** Age above which the data of a gauge is not exported. */
  readonly staleAfterMs: Readonly<Record<Collector, DurationMs>>;
  readonly options: Config["export"];
}

/** A row of the table of `proxynet_*` families. */
interface FamilyRow extends FamilyHead {
  readonly labels: readonly string[];
  /** The collector of the data. A gauge is exported while its data is fresh. */
  readonly source: Collector;
}

/** Sources of data about single nodes. */
type NodeSource = Extract<Collector, "nodes" | "details" | "sessions">;

/** By slot, 1 if samples of the node are exported. Gauges need fresh data; counters do not become stale. */
export interface Visibility extends Readonly<Record<NodeSource, Uint8Array>> {
  readonly sessionCounters: Uint8Array;
}

/** A column of a snapshot, by slot. */
export type ValueColumn = NumberColumn | Float64Array | Uint32Array | Uint8Array;

/**
 * A family with one line per node, or one per node and value of another label. Slots are those of the sessions by node
 * if the source is `sessions`, otherwise those of the fleet.
 */
export interface NodeFamily extends FamilyRow {
  readonly source: NodeSource;
  /** The other label and its values. Absent means one line per node. */
  readonly splitBy?: { readonly label: string; readonly values: readonly string[] };
  /**
   * Number of decimals (1 to 4) to write, which is faster than finding the shortest text. Values with more decimals,
   * and all values if this is absent, are written as the shortest text.
   */
  readonly decimals?: number;
  /**
   * Returns the columns, by slot, from which the values are computed. The values of a slot change only if its entries
   * in these columns do.
   */
  columns(input: RenderInput): readonly ValueColumn[];
  /**
   * Writes the values of the slots from `start` up to but not including `end` into `out`, grouped by node. NaN leaves a
   * sample out. The values of nodes that are not visible are not used.
   */
  fill(input: RenderInput, start: number, end: number, out: Float64Array): void;
}

/** Returns, by slot, 1 if the family shows the node. Only sessions have counters. */
export const visibleSlots = (visibility: Visibility, { type, source }: NodeFamily): Uint8Array =>
  type === "counter" ? visibility.sessionCounters : visibility[source];

/** One sample. NaN leaves it out. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Suffix of a histogram's series. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
}

/** A family whose number of samples does not depend on the number of nodes. */
export interface AggregateFamily extends FamilyRow {
  samples(input: RenderInput): Iterable<Sample>;
}

/** A gauge of some data. */
interface GaugeRow<Data> extends Pick<AggregateFamily, "name" | "help"> {
  /** Absent means none. */
  readonly labels?: readonly string[];
  readonly samples: (data: Data, input: RenderInput) => Iterable<Sample>;
}

/** Returns a function that creates gauges of the data that `read` returns. They are absent while it returns null. */
export const gaugesOf =
  <Data>(source: Collector, read: (input: RenderInput) => Data | null) =>
  ({ samples, labels = [], ...row }: GaugeRow<Data>): AggregateFamily => ({
    ...row,
    type: "gauge",
    labels,
    source,
    samples(input) {
      const data = read(input);
      return data === null ? [] : samples(data, input);
    },
  });

/** Returns whether data of `source` that was observed at `at` is fresh. */
export const isFresh = (input: RenderInput, source: Collector, at: MonotonicMs): boolean =>
  input.now - at <= input.staleAfterMs[source];

/** A `proxywarden_*` family. */
export interface DaemonFamily {
  readonly type: FamilyType;
  readonly help: string;
  /** For each label the closed list of its values, or null if the values are not known in advance. */
  readonly labels: Readonly<Record<string, readonly string[] | null>>;
  /** Upper bounds of a histogram's buckets, without +Inf. */
  readonly buckets?: readonly number[];
}

type DaemonLabels = DaemonFamily["labels"];
type NoLabels = Readonly<Record<never, never>>;

/** Creates a counter. */
export const counter = <const Labels extends DaemonLabels = NoLabels>(help: string, labels = {} as Labels) =>
  ({ type: "counter", help, labels }) as const;

/** Creates a gauge. */
export const gauge = <const Labels extends DaemonLabels = NoLabels>(help: string, labels = {} as Labels) =>
  ({ type: "gauge", help, labels }) as const;

/** Creates a histogram. */
export const histogram = <const Labels extends DaemonLabels>(
  help: string,
  labels: Labels,
  buckets: readonly number[],
) => ({ type: "histogram", help, labels, buckets }) as const;

/** Returns the node ids, by slot, for families with this source. The list is empty before the first data. */
export const idsOf = (source: Collector, { snapshot }: RenderInput): readonly NodeId[] =>
  source === "sessions" ? (snapshot.sessions?.nodes.ids ?? []) : snapshot.fleet.ids;
