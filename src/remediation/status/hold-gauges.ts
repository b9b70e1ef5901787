import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { HOLD_REASONS, type HoldReason } from "../../model/remediation/decision.ts";
import type { NodeId } from "../../model/node.ts";
import { policyNamed, type ToldDecision, type Ward } from "../context.ts";

/** Shows how many nodes are held, and how long the longest has been. Dry runs are left out. */
export interface HoldGauges {
  /** Brings the series up to date with the last decisions. */
  show(): void;
  /** Removes all of them. */
  clear(): void;
}

/** Reasons of nodes that were given up: they have a count and an alert of their own. */
const GIVEN_UP: ReadonlySet<HoldReason> = new Set<HoldReason>(["retry_wait", "retry_limit"]);

/** Creates the gauges of a ward. */
export function createHoldGauges(ward: Ward): HoldGauges {
  const { metrics, policies } = ward;
  /** Held nodes by reason, as they are shown. */
  const shown = new Map<HoldReason, number>();

  function showNodes(holds: readonly ToldDecision[]): void {
    const nodes = new Map(HOLD_REASONS.map((reason) => [reason, new Set<NodeId>()]));
    for (const { node, reasons } of holds) for (const reason of reasons) nodes.get(reason)!.add(node);
    for (const [reason, { size }] of nodes) {
      if (shown.get(reason) === size) continue;
      metrics.set("proxywarden_held_nodes", { reason }, size);
      shown.set(reason, size);
    }
  }

  function showLongest(holds: readonly ToldDecision[]): void {
    const lasting = holds.filter(({ reasons }) => !reasons.some((reason) => GIVEN_UP.has(reason)));
    for (const { rule } of policies) {
      const ofPolicy = lasting.filter(({ policy }) => policy === rule.name);
      const longestMs = ofPolicy.reduce((longest, told) => Math.max(longest, heldMs(ward, told)), 0);
      metrics.set("proxywarden_longest_hold_seconds", { policy: rule.name }, longestMs / SECOND_MS);
    }
  }

  return {
    show() {
      const holds = [...ward.told.values()].filter((told) => isHold(ward, told));
      showNodes(holds);
      showLongest(holds);
    },
    clear() {
      shown.clear();
      for (const reason of HOLD_REASONS) metrics.remove("proxywarden_held_nodes", { reason });
      for (const { rule } of policies) metrics.remove("proxywarden_longest_hold_seconds", { policy: rule.name });
    },
  };
}

/** Whether a policy that acts holds the node. A node that an episode of any policy treats is not held. */
function isHold({ books: { casebook } }: Ward, { node, shadow, reasons }: ToldDecision): boolean {
  if (shadow || reasons.length === 0) return false;
  const open = casebook.open(node, false);
  return open === null || open.state === "firing";
}

/** Time since the node could have been acted on: since its next step was due, or since its timer fires. */
function heldMs(ward: Ward, { policy, node }: ToldDecision): DurationMs {
  const { casebook, now } = ward.books;
  const open = casebook.open(node, false);
  if (open?.policy === policy) return now() - open.stateAt;
  const { since } = casebook.timer(policy, node);
  const forMs = policyNamed(ward, policy)?.rule.forMs ?? 0;
  const closedAt = casebook.past(node, false).at(-1)?.closedAt ?? Number.NEGATIVE_INFINITY;
  return Math.max(0, now() - Math.max((since ?? now()) + forMs, closedAt));
}
