import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Change } from "../model/remediation/journal.ts";
import { NODE_STATUSES, type NodeId } from "../model/node.ts";
import type { Fleet } from "../model/snapshot.ts";
import { isRebootedByUs } from "../policy/facts.ts";
import { slotOf, type Ward } from "./context.ts";

/** Notices what others do to nodes that a policy times: another daemon with a state of its own, or an operator. */
export interface ForeignActions {
  /** Compares the fleet with the one before, and holds each node on which others acted. */
  look(): void;
}

/**
 * How long a node is held after others acted on it: the longest time that the shipped policies give a reboot to be verified.
 * A node that restarted after a crash is held as well, for the two can't be told apart.
 */
export const FOREIGN_HOLD_MS: DurationMs = 15 * MINUTE_MS;
/** A hold is written again only if it ends later by this: nodes are looked at every few seconds. */
const REWRITE_MS: DurationMs = MINUTE_MS;

/** Creates a watch on the actions of others that has seen no fleet yet. */
export function createForeignActions(ward: Ward): ForeignActions {
  const { books } = ward;
  const { casebook } = books;
  let before: Fleet | null = null;
  /** Nodes that were timed at the look before: a reboot by others ends what was pending. */
  let timedBefore: ReadonlySet<NodeId> = new Set();

  /** What others did to a node; null: nothing that shows. */
  function actionOf(node: NodeId, slot: number, fleet: Fleet): string | null {
    const status = NODE_STATUSES[fleet.status[slot]!]!;
    if (status === "quarantined") {
      const isOurs = casebook.openOf(node, false).some(({ quarantine }) => quarantine !== null);
      return isOurs ? null : "it was quarantined, but not by us";
    }
    if (isRebootedByUs(casebook, node, books.now())) return null;
    if (status === "rebooting") return "it was rebooted, but not by us";
    const [was, is] = [uptimeOf(before, node, slot), uptimeOf(fleet, node, slot)];
    return is < was ? `its uptime fell from ${was} h to ${is} h without a reboot of ours` : null;
  }

  function hold(node: NodeId, reason: string): Change[] {
    const now = books.now();
    const until = now + FOREIGN_HOLD_MS;
    const known = casebook.holds(node).find(({ policy }) => policy === null);
    if (known !== undefined && (known.until === null || known.until > until - REWRITE_MS)) return [];
    if (known?.kind !== "ownership") ward.log.warn({ node, reason }, "a node is held, for others act on it");
    return [{ kind: "hold", row: { node, policy: null, kind: "ownership", at: now, until, reason } }];
  }

  return {
    look() {
      const { fleet } = ward.view!.snapshot;
      const timed = new Set(casebook.timedPolicies().flatMap((policy) => [...casebook.timersOf(policy).keys()]));
      const changes = [...new Set([...timed, ...timedBefore])].flatMap((node) => {
        const slot = slotOf(ward, node);
        const action = slot === null ? null : actionOf(node, slot, fleet);
        return action === null ? [] : hold(node, action);
      });
      [before, timedBefore] = [fleet, timed];
      if (changes.length > 0) books.record(changes);
    },
  };
}

/** Uptime of a node in a fleet; NaN: not known. */
const uptimeOf = (fleet: Fleet | null, node: NodeId, slot: number): number =>
  fleet !== null && fleet.ids[slot] === node ? fleet.uptimeHours[slot]! : Number.NaN;
