import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { eachInSteps, type Steps } from "../base/steps.ts";
import { NODE_STATUSES, type NodeId } from "../model/node.ts";
import type { NodeHold } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type { Fleet } from "../model/snapshot.ts";
import type { MonotonicMs } from "../model/time.ts";
import { runInSlices } from "../platform/event-loop.ts";
import { slotsById } from "../policy/cel/field-readers.ts";
import { ownQuarantine, wasRebootedByUs } from "../policy/episodes/attempts.ts";
import { isBootShown } from "../policy/episodes/verification.ts";
import type { DecisionContext, EpisodeContext } from "./context.ts";
import { ownershipOf } from "./operator-holds.ts";

/**
 * Time for which a node is held after others acted on it: as long as the shipped policy for offline nodes waits for a
 * forced reboot to be verified. A node that restarted after a crash is held as well, because it looks the same.
 */
const EXTERNAL_ACTION_HOLD_MS: DurationMs = 15 * MINUTE_MS;
/** A hold is extended by at least this much, because nodes are checked every few seconds and each change is journaled. */
const HOLD_REWRITE_MS: DurationMs = MINUTE_MS;

/**
 * Creates a detector that holds nodes on which others acted, such as an operator or another daemon with its own state.
 * It has not seen a fleet yet.
 */
export function createExternalActions(
  context: Omit<DecisionContext, "policies" | "config"> & Pick<EpisodeContext, "log">,
) {
  const { remediationState } = context;
  const { records } = remediationState;
  let previousFleet: Fleet | null = null;
  /** Nodes that had timers at the previous call. A reboot by others ends a pending timer, so they are compared again. */
  let previousNodes: ReadonlySet<NodeId> = new Set();
  /** The uptime of offline nodes before it became lower or unknown. Some services state 0 or null while a node is offline. */
  const beforeOffline = new Map<NodeId, Uptime>();

  /** Returns what others did to a node, or null if nothing is visible. */
  function detectAction(node: NodeId, slot: number, fleet: Fleet): string | null {
    const status = NODE_STATUSES[fleet.status[slot]!]!;
    const now = remediationState.now();
    if (status === "quarantined") {
      const isOurs = records.openEpisodesOf(node, false).some(({ quarantine }) => quarantine !== null);
      return isOurs || ownQuarantine(records, node, now) !== null ? null : "it was quarantined, but not by the daemon";
    }
    const before = beforeOffline.get(node) ?? uptimeOf(previousFleet, node, slot);
    const after = uptimeOf(fleet, node, slot);
    const isOffline = status === "offline";
    const isLower = !Number.isNaN(before.hours) && !(after.hours >= before.hours);
    if (!isOffline || !isLower) beforeOffline.delete(node);
    const mayHaveBooted = isOffline ? isLower : isBootShown(before.hours, after.hours, after.at - before.at);
    if ((status !== "rebooting" && !mayHaveBooted) || wasRebootedByUs(records, node, now)) return null;
    if (isOffline) {
      beforeOffline.set(node, before);
      return null;
    }
    if (status === "rebooting") return "it was rebooted, but not by the daemon";
    return `its uptime fell from ${before.hours} h to ${after.hours} h without a reboot by the daemon`;
  }

  function holdNode(node: NodeId, reason: string): JournalChange[] {
    const now = remediationState.now();
    const until = now + EXTERNAL_ACTION_HOLD_MS;
    const known = records.hold(node, null);
    const before = ownershipOf(known);
    if (known?.until === null || Math.max(known?.until ?? 0, before?.until ?? 0) > until - HOLD_REWRITE_MS) return [];
    if ((before?.until ?? 0) <= now)
      context.log.warn({ node, reason }, "node held: it was acted on, but not by a step of the daemon");
    const ownership = { at: now, until, reason };
    // The end of an operator's hold stays as it is.
    const row: NodeHold =
      known?.kind === "held" ? { ...known, ownership } : { node, policy: null, kind: "ownership", ...ownership };
    return [{ kind: "hold", row }];
  }

  /** Returns the changes that hold a node, if others acted on it. */
  function compareNode(node: NodeId, fleet: Fleet): JournalChange[] {
    const slot = slotsById(fleet).get(node);
    if (slot === undefined) beforeOffline.delete(node);
    const action = slot === undefined ? null : detectAction(node, slot, fleet);
    return action === null ? [] : holdNode(node, action);
  }

  return {
    /** Compares the nodes that have or had timers with the previous call, and holds those on which others acted. */
    async detect(): Promise<void> {
      const { fleet } = context.observed;
      const nodes = new Set<NodeId>();
      const changes: JournalChange[] = [];
      function* compareAll(): Steps<void> {
        for (const policy of records.policiesWithTimers())
          yield* eachInSteps(records.timersOf(policy).keys(), (node) => nodes.add(node));
        const compare = (node: NodeId) => changes.push(...compareNode(node, fleet));
        yield* eachInSteps(nodes, compare);
        yield* eachInSteps(previousNodes, (node) => nodes.has(node) || compare(node));
        yield* eachInSteps(beforeOffline.keys(), (node) => nodes.has(node) || compare(node));
      }
      await runInSlices(compareAll(), context.clock);
      [previousFleet, previousNodes] = [fleet, nodes];
      if (changes.length > 0) remediationState.record(changes);
    },
    /** Compares one node with the fleet of the last `detect`, and holds it if others acted on it. */
    detectOn(node: NodeId): void {
      const changes = compareNode(node, context.observed.fleet);
      if (changes.length > 0) remediationState.record(changes);
    },
  };
}

/** An uptime in hours, and when it was observed; both are NaN if unknown. */
interface Uptime {
  readonly hours: number;
  readonly at: MonotonicMs;
}

const uptimeOf = (fleet: Fleet | null, node: NodeId, slot: number): Uptime =>
  fleet !== null && fleet.ids[slot] === node
    ? { hours: fleet.uptimeHours.at(slot), at: fleet.listedAt.at(slot) }
    : { hours: Number.NaN, at: Number.NaN };
