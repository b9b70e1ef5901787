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

type ExternalActionsContext = Omit<DecisionContext, "policies" | "config"> & Pick<EpisodeContext, "log">;

/**
 * Holds nodes on which others acted, such as an operator or another daemon with its own state. It compares the fleet
 * with the one before.
 */
export class ExternalActions {
  readonly #context: ExternalActionsContext;
  #previousFleet: Fleet | null = null;
  /** Nodes that had timers at the previous call. A reboot by others ends a pending timer, so they are compared again. */
  #previousNodes: ReadonlySet<NodeId> = new Set();
  /** The uptime of offline nodes before it became lower or unknown. Some services state 0 or null while a node is offline. */
  readonly #beforeOffline = new Map<NodeId, Uptime>();

  constructor(context: ExternalActionsContext) {
    this.#context = context;
  }

  /** Compares the nodes that have or had timers with the previous call, and holds those on which others acted. */
  async detect(): Promise<void> {
    const { clock, observed } = this.#context;
    const { fleet } = observed;
    const nodes = new Set<NodeId>();
    const changes: JournalChange[] = [];
    await runInSlices(this.#compareAll(fleet, nodes, changes), clock);
    [this.#previousFleet, this.#previousNodes] = [fleet, nodes];
    this.#record(changes);
  }

  /** Compares one node with the fleet of the last `detect`, and holds it if others acted on it. */
  detectOn(node: NodeId): void {
    this.#record(this.#compareNode(node, this.#context.observed.fleet));
  }

  #record(changes: readonly JournalChange[]): void {
    if (changes.length > 0) this.#context.remediationState.record(changes);
  }

  /** Adds the nodes that have timers, and the changes that hold nodes on which others acted. */
  *#compareAll(fleet: Fleet, nodes: Set<NodeId>, changes: JournalChange[]): Steps<void> {
    const { records } = this.#context.remediationState;
    for (const policy of records.policiesWithTimers())
      yield* eachInSteps(records.timersOf(policy).keys(), (node) => nodes.add(node));
    const compare = (node: NodeId) => changes.push(...this.#compareNode(node, fleet));
    yield* eachInSteps(nodes, compare);
    yield* eachInSteps(this.#previousNodes, (node) => nodes.has(node) || compare(node));
    yield* eachInSteps(this.#beforeOffline.keys(), (node) => nodes.has(node) || compare(node));
  }

  /** Returns the changes that hold a node, if others acted on it. */
  #compareNode(node: NodeId, fleet: Fleet): JournalChange[] {
    const slot = slotsById(fleet).get(node);
    if (slot === undefined) this.#beforeOffline.delete(node);
    const action = slot === undefined ? null : this.#detectAction(node, slot, fleet);
    return action === null ? [] : this.#holdNode(node, action);
  }

  /** Returns what others did to a node, or null if nothing is visible. */
  #detectAction(node: NodeId, slot: number, fleet: Fleet): string | null {
    const status = NODE_STATUSES[fleet.status[slot]!]!;
    const { remediationState } = this.#context;
    const { records } = remediationState;
    const now = remediationState.now();
    if (status === "quarantined") {
      const isOurs = records.openEpisodesOf(node, false).some(({ quarantine }) => quarantine !== null);
      return isOurs || ownQuarantine(records, node, now) !== null ? null : "it was quarantined, but not by the daemon";
    }
    const before = this.#beforeOffline.get(node) ?? uptimeOf(this.#previousFleet, node, slot);
    const after = uptimeOf(fleet, node, slot);
    const isOffline = status === "offline";
    const isLower = !Number.isNaN(before.hours) && !(after.hours >= before.hours);
    if (!isOffline || !isLower) this.#beforeOffline.delete(node);
    const mayHaveBooted = isOffline ? isLower : isBootShown(before.hours, after.hours, after.at - before.at);
    if ((status !== "rebooting" && !mayHaveBooted) || wasRebootedByUs(records, node, now)) return null;
    if (isOffline) {
      this.#beforeOffline.set(node, before);
      return null;
    }
    if (status === "rebooting") return "it was rebooted, but not by the daemon";
    return `its uptime fell from ${before.hours} h to ${after.hours} h without a reboot by the daemon`;
  }

  #holdNode(node: NodeId, reason: string): JournalChange[] {
    const { log, remediationState } = this.#context;
    const now = remediationState.now();
    const until = now + EXTERNAL_ACTION_HOLD_MS;
    const known = remediationState.records.hold(node, null);
    const before = ownershipOf(known);
    if (known?.until === null || Math.max(known?.until ?? 0, before?.until ?? 0) > until - HOLD_REWRITE_MS) return [];
    if ((before?.until ?? 0) <= now)
      log.warn({ node, reason }, "node held: it was acted on, but not by a step of the daemon");
    const ownership = { at: now, until, reason };
    // The end of an operator's hold stays as it is.
    const row: NodeHold =
      known?.kind === "held" ? { ...known, ownership } : { node, policy: null, kind: "ownership", ...ownership };
    return [{ kind: "hold", row }];
  }
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
