import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { NODE_STATUSES, type NodeId } from "../model/node.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type { Fleet } from "../model/snapshot.ts";
import { wasRebootedByUs } from "../policy/facts.ts";
import type { RemediationContext } from "./context.ts";

/**
 * Time for which a node is held after others acted on it, which is what the shipped policy for offline nodes allows for
 * the verification of a forced reboot. A node that restarted after a crash is held as well, because it looks the same.
 */
export const EXTERNAL_ACTION_HOLD_MS: DurationMs = 15 * MINUTE_MS;
/** A hold is extended by at least this much at a time, because nodes are checked every few seconds. */
const HOLD_REWRITE_MS: DurationMs = MINUTE_MS;

/**
 * Returns a function that compares the fleet with that of the previous call. It holds each node that has a timer if
 * others acted on the node, such as an operator or another daemon with its own state.
 */
export function createExternalActions(
  context: Pick<RemediationContext, "log" | "observed" | "remediationState">,
): () => void {
  const { remediationState } = context;
  const { records } = remediationState;
  let previousFleet: Fleet | null = null;
  /** Nodes that had timers at the previous call. They are kept because a reboot by others ends a pending timer. */
  let previousNodes: ReadonlySet<NodeId> = new Set();

  /** Returns what others did to a node, or null if nothing is visible. */
  function detectAction(node: NodeId, slot: number, fleet: Fleet): string | null {
    const status = NODE_STATUSES[fleet.status[slot]!]!;
    if (status === "quarantined") {
      const isOurs = records.openEpisodesOf(node, false).some(({ quarantine }) => quarantine !== null);
      return isOurs ? null : "it was quarantined, but not by us";
    }
    const [was, is] = [uptimeOf(previousFleet, node, slot), uptimeOf(fleet, node, slot)];
    if (status !== "rebooting" && !(is < was)) return null;
    if (wasRebootedByUs(records, node, remediationState.now())) return null;
    if (status === "rebooting") return "it was rebooted, but not by us";
    return `its uptime fell from ${was} h to ${is} h without a reboot of ours`;
  }

  function holdNode(node: NodeId, reason: string): JournalChange[] {
    const now = remediationState.now();
    const until = now + EXTERNAL_ACTION_HOLD_MS;
    const known = records.holdsOn(node).find(({ policy }) => policy === null);
    if (known !== undefined && (known.until === null || known.until > until - HOLD_REWRITE_MS)) return [];
    if (known?.kind !== "ownership") context.log.warn({ node, reason }, "node held: someone else acted on it");
    return [{ kind: "hold", row: { node, policy: null, kind: "ownership", at: now, until, reason } }];
  }

  return () => {
    const { fleet } = context.observed;
    const nodes = new Set<NodeId>();
    for (const policy of records.policiesWithTimers())
      for (const node of records.timersOf(policy).keys()) nodes.add(node);
    const changes: JournalChange[] = [];
    const compare = (node: NodeId) => {
      const slot = context.observed.slotOf(node);
      const action = slot === null ? null : detectAction(node, slot, fleet);
      if (action !== null) changes.push(...holdNode(node, action));
    };
    for (const node of nodes) compare(node);
    for (const node of previousNodes) if (!nodes.has(node)) compare(node);
    [previousFleet, previousNodes] = [fleet, nodes];
    if (changes.length > 0) remediationState.record(changes);
  };
}

/** Returns the uptime of a node in hours, or NaN if unknown. */
const uptimeOf = (fleet: Fleet | null, node: NodeId, slot: number): number =>
  fleet !== null && fleet.ids[slot] === node ? fleet.uptimeHours[slot]! : Number.NaN;
