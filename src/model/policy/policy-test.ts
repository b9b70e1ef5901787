import type { DurationMs } from "../../base/duration.ts";
import type { NodeId, NodeStatus } from "../node.ts";
import type { SessionStatus } from "../session.ts";
import type { EpochMs } from "../time.ts";

/** A value, and how long it stays; the last one of a series stays for good. */
export interface Span<Value> {
  readonly value: Value;
  readonly forMs: DurationMs;
}

/** What something is over time, from the beginning of a test on; never empty. */
export type Series<Value> = readonly Span<Value>[];

/** What the service shows of one node over time. It does what is written, whatever is done to it. */
export interface ScriptedNode {
  readonly id: NodeId;
  readonly name: string;
  readonly country: string;
  readonly region: string;
  readonly version: string;
  readonly status: Series<NodeStatus>;
  /** Null: heard of while it is online. */
  readonly lastSeen: Series<"now" | "frozen"> | null;
  /** Null: it grows, and restarts at 0 after a reboot. */
  readonly uptimeHours: Series<number> | null;
  readonly activeSessions: Series<number>;
  readonly bandwidthGb: Series<number>;
  readonly cpuUsage: Series<number>;
  readonly memoryUsage: Series<number>;
  readonly diskUsage: Series<number>;
  /** Sessions of it that the list shows, by status. */
  readonly sessions: Readonly<Partial<Record<SessionStatus, Series<number>>>>;
}

/** What is expected of a node at a moment; absent fields are not compared. */
export interface Expectation {
  readonly atMs: DurationMs;
  readonly node: NodeId;
  readonly policy: string;
  readonly verdict?: "true" | "false" | "unknown";
  readonly timer?: "inactive" | "pending" | "firing";
  /** Every reason that would hold an action now, in any order. */
  readonly held?: readonly string[];
  /** Every action so far, oldest first: `forced reboot`, or with its outcome: `forced reboot: verified`. */
  readonly actions?: readonly string[];
}

/** One test of policies: a fleet over time, and what is expected. */
export interface PolicyTest {
  readonly name: string;
  readonly startsAt: EpochMs;
  /** Between two walks. */
  readonly intervalMs: DurationMs;
  readonly nodes: readonly ScriptedNode[];
  /** Whether what `blocked_by` asks about is there. */
  readonly blocked: Series<boolean>;
  readonly expectations: readonly Expectation[];
}

/** The value of a series at a time since its beginning. */
export function valueAt<Value>(series: Series<Value>, elapsedMs: DurationMs): Value {
  let endsAt = 0;
  for (const { value, forMs } of series) {
    endsAt += forMs;
    if (elapsedMs < endsAt) return value;
  }
  return series.at(-1)!.value;
}
