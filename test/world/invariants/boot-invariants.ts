import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Action, NodeHold } from "../../../src/model/remediation/episode.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** Maximum age of the record that a hold is based on. */
const LISTED_MS_MAX: DurationMs = HOUR_MS / 2;

/**
 * Creates a check of each commit: a node was booted if the commit holds it because of its uptime, or says that its uptime
 * proves our reboot.
 */
export function createBootCheck(): (changes: readonly JournalChange[], parts: SimulationParts) => void {
  /** The reason of the last hold of each node. Later changes of its row, such as a hold by an operator, contain it again. */
  const reasons = new Map<string, string>();
  return (changes, parts) => {
    for (const change of changes) {
      if (change.kind === "action") checkProof(change.row, parts);
      if (change.kind !== "hold") continue;
      const { node, ownership, reason } = change.row;
      const current = ownership?.reason ?? reason;
      if (reasons.get(node) !== current) checkHold(change.row, parts);
      reasons.set(node, current);
    }
  };
}

function checkHold(hold: NodeHold, { service, serviceNow, addViolation }: SimulationParts): void {
  const { at, reason } = hold.ownership ?? hold;
  const [, hours] = /^its uptime fell from \S+ h to (\S+) h/.exec(reason) ?? [];
  const node = findNode(service.network.fleet, hold.node);
  if (hours === undefined || node === null) return;
  const upMs = serviceNow() - node.bootAt;
  if (upMs > (Number(hours) + 1) * HOUR_MS + LISTED_MS_MAX)
    addViolation("held for a boot that did not happen", `${hold.node} at ${at}: up for ${upMs / HOUR_MS} h; ${reason}`);
}

function checkProof({ id, node: nodeId, proof }: Action, parts: SimulationParts): void {
  const node = findNode(parts.service.network.fleet, nodeId);
  const post = parts.posts.find(({ action }) => action?.id === id);
  if (node === null || post === undefined || (proof !== "uptime_fell" && proof !== "boot_after_post")) return;
  const beforeMs = parts.startMs + post.at - node.bootAt;
  if (beforeMs > MINUTE_MS) parts.addViolation("false proof", `${id}: booted ${beforeMs} ms before the POST`);
}
