import type { DurationMs } from "../../base/duration.ts";
import type { NodeId, NodeStatus } from "../node.ts";
import type { SessionStatus } from "../session.ts";
import type { EpochMs } from "../time.ts";

/** A value and how long it lasts; the last value of a series lasts forever. */
export interface Span<Value> {
  readonly value: Value;
  readonly forMs: DurationMs;
}

/** Values over time from the start of a test; never empty. */
export type Series<Value> = readonly Span<Value>[];

/** What the service reports about a node over time. It follows the script and does not react to actions. */
export interface ScriptedNode {
  readonly id: NodeId;
  readonly name: string;
  readonly country: string;
  readonly region: string;
  readonly version: string;
  readonly status: Series<NodeStatus>;
  /** Null if it is current while the node is online. */
  readonly lastSeen: Series<"now" | "frozen"> | null;
  /** Null if it increases, and restarts at 0 after a reboot. */
  readonly uptimeHours: Series<number> | null;
  readonly activeSessions: Series<number>;
  readonly bandwidthGb: Series<number>;
  /** Usages are ratios, 0 to 1. */
  readonly cpuUsage: Series<number>;
  readonly memoryUsage: Series<number>;
  readonly diskUsage: Series<number>;
  /** Number of its sessions in the list, by status. */
  readonly sessions: Readonly<Partial<Record<SessionStatus, Series<number>>>>;
}

/** The expected state of a node at a time; absent fields are not compared. */
export interface Expectation {
  readonly atMs: DurationMs;
  readonly node: NodeId;
  readonly policy: string;
  readonly verdict?: "true" | "false" | "unknown";
  readonly timer?: "inactive" | "pending" | "firing";
  /** Every reason that would hold an action, in any order. */
  readonly held?: readonly string[];
  /** Every action so far, oldest first: `forced reboot`, or with its outcome: `forced reboot: verified`. */
  readonly actions?: readonly string[];
}

/** A policy test: a fleet over time, and the expected states. */
export interface PolicyTest {
  readonly name: string;
  readonly startsAt: EpochMs;
  /** Interval between two walks. */
  readonly intervalMs: DurationMs;
  readonly nodes: readonly ScriptedNode[];
  /** Whether the external blockers in `blocked_by` block. */
  readonly blocked: Series<boolean>;
  readonly expectations: readonly Expectation[];
}

/** Returns the value of a series at a time since the start. */
export function valueAt<Value>(series: Series<Value>, elapsedMs: DurationMs): Value {
  let endsAt = 0;
  for (const { value, forMs } of series) {
    endsAt += forMs;
    if (elapsedMs < endsAt) return value;
  }
  return series.at(-1)!.value;
}
