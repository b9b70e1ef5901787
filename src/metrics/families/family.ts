import type { DurationMs } from "../../base/duration.ts";
import type { NodeLabel } from "../../model/node.ts";
import type { Collector, Snapshot } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import type { FamilyHead } from "../text-format.ts";

/** What the configuration says of the export. */
export interface ExportOptions {
  readonly nodeLabels: readonly NodeLabel[];
  /** Customers with a series of their own; the rest is summed. */
  readonly topCustomers: number;
  /** Families left out, by name. */
  readonly deny: ReadonlySet<string>;
  /** Over it, families are dropped whole, widest first. */
  readonly seriesMax: number;
}

/** All that a rendering depends on. */
export interface RenderInput {
  readonly snapshot: Snapshot;
  readonly now: MonotonicMs;
  /** The same moment on the service's clock, which hourly statistics go by. */
  readonly serviceNowMs: EpochMs;
  /** Age at which a gauge's datum is too old to be shown. */
  readonly staleAfterMs: Readonly<Record<Collector, DurationMs>>;
  readonly options: ExportOptions;
}

/** What every row says, whatever it is read from. */
export interface FamilyRow extends FamilyHead {
  readonly labels: readonly string[];
  /** What the data come from: its age decides whether a gauge is shown. */
  readonly source: Collector;
}

/** Which columns a family is read from: those of the fleet, or those of the sessions by node. */
export type NodeSource = "fleet" | "session_nodes";

/**
 * By slot, whether a sample of it may be shown: 1 where there is a node whose datum is fresh. Counters do not age, so
 * for them being there is enough.
 */
export interface Visibility {
  readonly listed: Uint8Array;
  readonly detailed: Uint8Array;
  readonly sessions: Uint8Array;
  readonly sessionCounters: Uint8Array;
}

/** A family with one line a node, or one for each value of a further label. */
export interface NodeFamily extends FamilyRow {
  readonly nodeSource: NodeSource;
  /** The label that tells a node's lines apart, and its values, one a line; null: one line a node. */
  readonly splitBy: { readonly label: string; readonly values: readonly string[] } | null;
  /** Writes the values of the slots from `start` to before `end` into `out`, a node's lines together; NaN: left out. */
  fill(input: RenderInput, visibility: Visibility, start: number, end: number, out: Float64Array): void;
}

/** One sample. NaN is left out. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** What a histogram's series have after the family's name. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
}

/** A family read whole: its samples do not grow with the nodes. */
export interface AggregateFamily extends FamilyRow {
  /** How many samples there can be at most. */
  maxSamples(input: RenderInput): number;
  samples(input: RenderInput): Iterable<Sample>;
}

/** Whether a datum of `source`, observed at `at`, is young enough to be shown. */
export const isFresh = (input: RenderInput, source: Collector, at: MonotonicMs): boolean =>
  input.now - at <= input.staleAfterMs[source];
