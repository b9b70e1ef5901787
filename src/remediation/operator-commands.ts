import { fail, ok, type Result } from "../base/result.ts";
import type { NodeId } from "../model/node.ts";
import type { Action } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type { OperatorCommandName } from "../model/remediation/operator-command.ts";
import type { RemediationContext } from "./context.ts";
import { approvalExpiry } from "./evaluation/candidates.ts";
import { type FleetHealth, PAUSED } from "./evaluation/fleet-health.ts";
import type { InventoryTrustTracker } from "./evaluation/inventory-trust.ts";
import type { TransitionDeps } from "./execution/episode-transitions.ts";
import { acceptLosses, actionChange, lostNodes } from "./execution/episode-transitions.ts";
import { efficacySinceFactKey, fallbackFactKey } from "./policy-set.ts";
import type { CommandRejection, OperatorCommands } from "./status/views.ts";

/** Dependencies of the operator commands. */
export interface OperatorCommandsDeps {
  readonly context: TransitionDeps & Pick<RemediationContext, "observed">;
  readonly fleetHealth: FleetHealth;
  readonly trust: InventoryTrustTracker;
  /** Called after each command that succeeded. */
  onCommand(): void;
}

/** A command to journal, with the node or action that it is about. */
interface CommandTarget {
  readonly command: OperatorCommandName;
  readonly node?: NodeId | null;
  readonly action?: string | null;
}

/**
 * Most holds of nodes that are not listed. A hold lasts until it is released, and a mistyped id is never listed.
 */
export const UNLISTED_HOLDS_MAX = 100;

/**
 * Creates the commands of one operator; null: no operators are configured. A command that can't be journaled is rejected,
 * because a restart would lose it.
 */
export function createOperatorCommands(parts: OperatorCommandsDeps, operator: string | null = null): OperatorCommands {
  const { context, fleetHealth, trust, onCommand: onOrder } = parts;
  const { remediationState } = context;
  const { records } = remediationState;
  const who = operator ?? "an operator";
  const policyByName = operator === null ? {} : { operator };

  const commandRow = (
    { command: order, node = null, action = null }: CommandTarget,
    detail: string,
  ): JournalChange => ({
    kind: "order",
    row: { at: remediationState.now(), order, operator, node, action, detail },
  });

  function recordCommand(
    subject: CommandTarget,
    changes: readonly JournalChange[],
    reply: string,
    adopt = () => {},
  ): Result<string, CommandRejection> {
    if (!remediationState.commit([...changes, commandRow(subject, reply)])) {
      return rejectCommand(
        "journal",
        `the journal can't be written: ${remediationState.journalProblem()}; nothing has changed`,
      );
    }
    adopt();
    onOrder();
    return ok(reply);
  }

  function awaitingAction(id: string): Result<Action, CommandRejection> {
    const action = records.action(id);
    if (action === null) return rejectCommand("not_found", `there is no action ${id}`);
    const expiry = approvalExpiry(context, action);
    if (action.state === "awaiting" && expiry === null) return ok(action);
    if (action.state === "awaiting") return rejectCommand("conflict", `${id} has expired: ${expiry}`);
    return rejectCommand("conflict", `${id} does not wait for approval: it is ${action.state}`);
  }

  /** Nodes other than this one that operators hold and that are not listed. */
  const unlistedHolds = (node: NodeId): number =>
    records
      .allHolds()
      .filter((hold) => hold.kind === "held" && hold.node !== node && context.observed.slotOf(hold.node) === null)
      .length;

  const answeredAction = (action: Action): Action =>
    operator === null ? action : { ...action, answered: { operator, at: remediationState.now() } };

  return {
    as: (name) => createOperatorCommands(parts, name),
    pause(reason) {
      const value = JSON.stringify({ at: remediationState.now(), reason, ...policyByName });
      const reply = `paused: ${reason}; no node is touched until resume`;
      return recordCommand({ command: "pause" }, [{ kind: "fact", key: PAUSED, value }], reply);
    },
    resume() {
      if (records.fact(PAUSED) === null) return ok("it was not paused");
      return recordCommand({ command: "resume" }, [{ kind: "fact", key: PAUSED, value: null }], "resumed");
    },
    approve(id) {
      const action = awaitingAction(id);
      if (!action.ok) return action;
      const { request, node } = action.value;
      const reply = `${id} is approved: ${request.kind} of ${node}, as soon as nothing else holds it`;
      const row: Action = { ...answeredAction(action.value), state: "approved", approvedAt: remediationState.now() };
      return recordCommand({ command: "approve", node, action: id }, [actionChange(row)], reply);
    },
    reject(id, reason) {
      const action = awaitingAction(id);
      if (!action.ok) return action;
      const reasonSuffix = reason === "" ? "" : `: ${reason}`;
      const detail = `${who} rejected ${id}${reasonSuffix}`;
      const row: Action = {
        ...answeredAction(action.value),
        state: "rejected",
        endedAt: remediationState.now(),
        detail,
      };
      const reply = `${id} is rejected${reasonSuffix}; the step is not asked for again in this episode`;
      return recordCommand({ command: "reject", node: row.node, action: id }, [actionChange(row)], reply);
    },
    hold(node, reason) {
      const isListed = context.observed.slotOf(node) !== null;
      if (!isListed && unlistedHolds(node) >= UNLISTED_HOLDS_MAX) {
        const message = `${UNLISTED_HOLDS_MAX} nodes that are not listed are held already; release one of them first`;
        return rejectCommand("conflict", message);
      }
      const reasonSuffix = reason === "" ? "" : `: ${reason}`;
      const base = { node, policy: null, kind: "held", at: remediationState.now(), until: null } as const;
      const row = { ...base, reason: `${who} holds it${reasonSuffix}`, ...policyByName };
      const note = isListed ? "" : "; no node of that id is listed now, and the hold is in force once it is";
      const reply = `${node} is held${reasonSuffix}; it is not touched until release${note}`;
      return recordCommand({ command: "hold", node }, [{ kind: "hold", row }], reply);
    },
    release(node) {
      const holds = records.holdsOn(node).filter(({ until }) => until === null || until > remediationState.now());
      if (holds.length === 0) return rejectCommand("not_found", `nobody holds ${JSON.stringify(node)}`);
      // What was tried before a node was given up counts no more: the row stays, to say since when.
      const changes = holds.map((hold): JournalChange => {
        const { kind, policy } = hold;
        if (kind === "given_up") return { kind: "hold", row: { ...hold, until: remediationState.now() } };
        return { kind: "hold_gone", node, policy };
      });
      const current = holds.flatMap(({ kind, policy }) => (kind === "given_up" ? (policy ?? []) : []));
      const tried = current.length === 0 ? "" : `; ${current.join(" and ")} may try it again`;
      return recordCommand({ command: "release", node }, changes, `${node} is released${tried}`);
    },
    resetBreaker() {
      const isOpen = fleetHealth.breaker().open !== null;
      const hasFallenBack = context.policies.all
        .filter((policy) => context.policies.activate(policy).hasFallenBack)
        .map(({ rule }) => rule.name);
      if (!isOpen && hasFallenBack.length === 0) {
        return rejectCommand("conflict", "the breaker is not open, and no policy has fallen back to dry_run");
      }
      const { changes, apply: adopt } = fleetHealth.resetBreaker(hasFallenBack);
      const current = hasFallenBack.flatMap((name): JournalChange[] => [
        { kind: "fact", key: fallbackFactKey(name), value: null },
        { kind: "fact", key: efficacySinceFactKey(name), value: String(remediationState.now()) },
      ]);
      const reply = [
        ...(isOpen ? ["the breaker is closed, and counts from zero"] : []),
        ...(hasFallenBack.length === 0
          ? []
          : [
              `${hasFallenBack.join(" and ")} ${hasFallenBack.length === 1 ? "acts" : "act"} again, and its efficacy is measured anew`,
            ]),
      ];
      return recordCommand({ command: "reset-breaker" }, [...changes, ...current], reply.join("; "), adopt);
    },
    acceptInventory() {
      const walk = context.observed.latest?.snapshot.fleet.lastWalk ?? null;
      if (walk === null || walk.isAborted) {
        return rejectCommand(
          "conflict",
          "the last walk of the nodes was cut off before the end of the list: there is nothing to accept",
        );
      }
      const { changes, apply: adopt } = trust.acceptMissing(walk.seenNodes, walk.missing);
      const without =
        walk.missing === 0 ? "" : `; ${walk.missing} that it does not show, or does not count, are accepted`;
      const lost = lostNodes(context).size;
      const gone = lost === 0 ? "" : `; the loss of ${lost} that left the list after an action is accepted`;
      const reply = `the inventory is measured by the ${walk.seenNodes} nodes of now${without}${gone}`;
      return recordCommand({ command: "accept-inventory" }, changes, reply, () => {
        adopt();
        acceptLosses(context);
      });
    },
    noteReload(problems, origin = "") {
      const rest = problems.length > 1 ? ` (and ${problems.length - 1} more problems)` : "";
      const reply = problems.length === 0 ? "the new configuration is in force" : `refused: ${problems[0]}${rest}`;
      remediationState.record([commandRow({ command: "reload" }, `${origin}${reply}`)]);
    },
  };
}

const rejectCommand = (kind: CommandRejection["kind"], message: string): Result<never, CommandRejection> =>
  fail({ kind, message });
