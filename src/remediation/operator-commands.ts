import { countNoun } from "../base/count-noun.ts";
import type { DurationMs } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { NodeId } from "../model/node.ts";
import type { Action, NodeHold } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type {
  CommandRejection,
  CommandReply,
  OperatorCommand,
  OperatorCommandName,
  Pause,
} from "../model/remediation/operator-command.ts";
import type { RemediationContext } from "./context.ts";
import { approvalExpiry } from "./evaluation/candidates.ts";
import type { FleetHealth } from "./evaluation/fleet-health.ts";
import type { InventoryTrustTracker } from "./evaluation/inventory-trust.ts";
import { acceptableNodes, acceptLosses, actionChange, type TransitionDeps } from "./execution/episode-transitions.ts";
import { formatEnd, PAUSED } from "./operator-holds.ts";
import { efficacySinceFactKey, fallbackFactKey } from "./policy-set.ts";
import type { RemediationState } from "./state/journaled-state.ts";
import type { OperatorCommands } from "./status/views.ts";

/** Dependencies of the operator commands. */
export interface OperatorCommandsDeps {
  readonly context: TransitionDeps & Pick<RemediationContext, "observed">;
  readonly fleetHealth: FleetHealth;
  readonly trustTracker: InventoryTrustTracker;
  /** Aborted when the controller stops. The next controller reads what the journal holds, so no command is begun then. */
  readonly stopping: AbortSignal;
  /** Called after each command that changed something. */
  onCommand(): void;
}

/** A command to journal, with the node or action that it is about. */
interface CommandTarget {
  readonly command: OperatorCommandName;
  readonly node?: NodeId;
  readonly action?: string;
}

/** What a command changes, and its reply. `apply` adopts changes that are not rows of the journal. */
interface CommandPlan {
  /** What to journal the command for, or null if there is nothing to change. */
  readonly target: CommandTarget | null;
  readonly changes: readonly JournalChange[];
  readonly reply: string;
  apply(): void;
}

type Planned = Result<CommandPlan, CommandRejection>;

/**
 * Maximum number of holds on nodes that are not listed. A hold may last until it is released, and a mistyped id is
 * never listed.
 */
export const UNLISTED_HOLDS_MAX = 100;

/** Creates the commands of operators. */
export const createOperatorCommands = (deps: OperatorCommandsDeps): OperatorCommands => ({
  execute: async (command) =>
    deps.stopping.aborted
      ? reject("stopping", "the daemon is reloading or stopping, and nothing has changed; try again in a few seconds")
      : new JournaledCommands(deps, command.operator).execute(command),
  noteReload: (problems, operator, origin) => new JournaledCommands(deps, operator).noteReload(problems, origin),
});

/**
 * The commands of one operator, or null if no operators are configured. A command that can't be journaled is rejected,
 * because a restart would lose it. A command is planned with the state after all earlier commits, and takes effect once
 * it is journaled.
 */
class JournaledCommands {
  readonly #deps: OperatorCommandsDeps;
  readonly #state: RemediationState;
  readonly #operator: string | null;
  /** The operator, as replies and reasons name them. */
  readonly #name: string;

  constructor(deps: OperatorCommandsDeps, operator: string | null) {
    this.#deps = deps;
    this.#state = deps.context.remediationState;
    this.#operator = operator;
    this.#name = operator ?? "an operator";
  }

  /** Plans a command, journals it and its changes, and applies it. */
  async execute(command: OperatorCommand): Promise<CommandReply> {
    let planned!: Planned;
    const changesNow = () => {
      planned = this.#plan(command);
      if (!planned.ok || planned.value.target === null) return null;
      const { target, changes, reply } = planned.value;
      return [...changes, this.#commandRow(target, reply)];
    };
    const isDone = await this.#state.commitLatest(changesNow, () => planned.ok && planned.value.apply());
    if (!planned.ok) return planned;
    const { target, reply } = planned.value;
    if (isDone) this.#deps.onCommand();
    if (isDone && target !== null) this.#count(target.command);
    if (isDone || target === null) return ok(reply);
    const problem = this.#state.journalProblem() ?? "the journal could not be written, but now can";
    return reject("journal", `${problem}; nothing has changed`);
  }

  noteReload(problems: readonly string[], origin: string): void {
    const rest = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
    const result = problems.length === 0 ? "the new configuration is active" : `rejected: ${problems[0]}${rest}`;
    this.#state.record([this.#commandRow({ command: "reload" }, `${origin}${result}`)]);
    this.#count("reload");
  }

  #plan({ command, target, reason, forMs = null }: OperatorCommand): Planned {
    switch (command) {
      case "pause":
        return this.#planPause(reason, forMs);
      case "resume":
        return this.#planResume();
      case "approve":
        return this.#planApprove(target);
      case "reject":
        return this.#planReject(target, reason);
      case "hold":
        return this.#planHold(target, reason, forMs);
      case "release":
        return this.#planRelease(target);
      case "reset-breaker":
        return this.#planResetBreaker();
      case "accept-inventory":
        return this.#planAcceptInventory();
      default:
        command satisfies never;
        // A standby of another version forwarded it.
        return reject("conflict", `this version does not have the command ${command}`);
    }
  }

  #planPause(reason: string, forMs: DurationMs | null): Planned {
    const at = this.#state.now();
    const until = forMs === null ? null : at + forMs;
    const pause: Pause = { at, until, reason, ...this.#operatorField() };
    const reply = `paused: ${reason}; no action is taken until ${formatEnd(pause, "resume", this.#state.clock)}`;
    return plan({ command: "pause" }, [{ kind: "fact", key: PAUSED, value: JSON.stringify(pause) }], reply);
  }

  #planResume(): Planned {
    if (this.#state.records.fact(PAUSED) === null)
      return ok({ target: null, changes: [], reply: "it was not paused", apply() {} });
    return plan({ command: "resume" }, [{ kind: "fact", key: PAUSED, value: null }], "resumed");
  }

  #planApprove(id: string): Planned {
    const action = this.#awaitingAction(id);
    if (!action.ok) return action;
    const { request, node } = action.value;
    const reply = `${id} is approved: ${request.kind} of ${this.#nameOf(node)}, once nothing else holds it`;
    const row: Action = { ...action.value, ...this.#answer(), state: "approved", approvedAt: this.#state.now() };
    return plan({ command: "approve", node, action: id }, [actionChange(row)], reply);
  }

  #planReject(id: string, reason: string): Planned {
    const action = this.#awaitingAction(id);
    if (!action.ok) return action;
    const { node, request } = action.value;
    const detail = `${this.#name} rejected ${id}${suffix(reason)}`;
    const row: Action = { ...action.value, ...this.#answer(), state: "rejected", endedAt: this.#state.now(), detail };
    const reply = `${id}, ${request.kind} of ${this.#nameOf(node)}, is rejected${suffix(reason)}; the step is not requested again in this episode, unless the node is released`;
    return plan({ command: "reject", node, action: id }, [actionChange(row)], reply);
  }

  #planHold(node: NodeId, reason: string, forMs: DurationMs | null): Planned {
    const isListed = this.#isListed(node);
    if (!isListed && this.#unlistedHolds(node) >= UNLISTED_HOLDS_MAX) {
      const message = `${UNLISTED_HOLDS_MAX} nodes that are not listed are held already; release one of them first`;
      return reject("conflict", message);
    }
    const at = this.#state.now();
    // The row replaces one of `ownership`, which must not end earlier because of it.
    const owned = this.#state.records.holdsOn(node).find(({ kind }) => kind === "ownership")?.until ?? 0;
    const until = forMs === null ? null : Math.max(at + forMs, owned);
    const base = { node, policy: null, kind: "held", at, until } as const;
    const row = { ...base, reason: `${this.#name} holds it${suffix(reason)}`, ...this.#operatorField() };
    const note = isListed ? "" : "; no node of that id is listed now, and the hold applies once it is";
    const reply = `${this.#nameOf(node)} is held${suffix(reason)}; it is not touched until ${formatEnd(row, "release", this.#state.clock)}${note}`;
    return plan({ command: "hold", node }, [{ kind: "hold", row }], reply);
  }

  #planRelease(node: NodeId): Planned {
    const now = this.#state.now();
    const { records } = this.#state;
    const holds = records.holdsOn(node).filter(({ until }) => until === null || until > now);
    const rejected = records
      .openEpisodesOf(node)
      .flatMap(({ id, step }) => records.actionsOf(id).filter((action) => action.step === step))
      .filter(({ state }) => state === "rejected");
    if (holds.length === 0 && rejected.length === 0)
      return reject("not_found", `${JSON.stringify(this.#nameOf(node))} is not held`);
    // The row of a given-up node stays: its attempts are counted from the release.
    const changes = holds.map((hold): JournalChange => {
      if (hold.kind === "given_up") return { kind: "hold", row: { ...hold, until: now } };
      return { kind: "hold_gone", node, policy: hold.policy };
    });
    const detail = `${this.#name} lifted the rejection`;
    for (const action of rejected) changes.push(actionChange({ ...action, state: "lapsed", detail }));
    const policies = holds.flatMap(({ kind, policy }) => (kind === "given_up" ? (policy ?? []) : []));
    const retries = policies.length === 0 ? "" : `; ${policies.join(" and ")} may try it again`;
    const ids = rejected.map(({ id }) => id).join(" and ");
    const lifted = ids === "" ? "" : `; the rejection of ${ids} is lifted, and the step is requested again`;
    return plan({ command: "release", node }, changes, `${this.#nameOf(node)} is released${retries}${lifted}`);
  }

  #planResetBreaker(): Planned {
    const { context, fleetHealth } = this.#deps;
    const isOpen = fleetHealth.state(false).breaker.open !== null;
    const fallen = context.policies
      .active()
      .flatMap(({ hasFallenBack, policy }) => (hasFallenBack ? [policy.rule.name] : []));
    if (!isOpen && fallen.length === 0)
      return reject("conflict", "the breaker is not open, and no policy has fallen back to dry_run");
    const { changes, apply } = fleetHealth.resetBreaker(fallen);
    const policyChanges = fallen.flatMap((name): JournalChange[] => [
      { kind: "fact", key: fallbackFactKey(name), value: null },
      { kind: "fact", key: efficacySinceFactKey(name), value: String(this.#state.now()) },
    ]);
    const breakerReply = isOpen ? ["the breaker is closed, and counts from zero"] : [];
    const verb = fallen.length === 1 ? "acts" : "act";
    const policyReply =
      fallen.length === 0 ? [] : [`${fallen.join(" and ")} ${verb} again; efficacy is measured from now on`];
    const reply = [...breakerReply, ...policyReply].join("; ");
    return plan({ command: "reset-breaker" }, [...changes, ...policyChanges], reply, apply);
  }

  #planAcceptInventory(): Planned {
    const { context, trustTracker } = this.#deps;
    const walk = context.observed.latest?.snapshot.fleet.lastWalk ?? null;
    if (walk === null || walk.isAborted) {
      const message = "the node list was not read to its end: there is nothing to accept";
      return reject("conflict", message);
    }
    const { changes, apply } = trustTracker.acceptMissing(walk.seenNodes, walk.missing);
    const missing = walk.missing === 0 ? "" : `; ${countNoun(walk.missing, "missing node")} accepted`;
    const lost = acceptableNodes(context).size;
    const losses = lost === 0 ? "" : `; the loss of ${countNoun(lost, "node")} after an action is accepted`;
    const reply = `the inventory baseline is now ${countNoun(walk.seenNodes, "node")}${missing}${losses}`;
    return plan({ command: "accept-inventory" }, changes, reply, () => {
      apply();
      acceptLosses(context);
    });
  }

  #count(command: OperatorCommandName): void {
    this.#deps.context.metrics.inc("proxywarden_operator_commands_total", { command, source: "operator" });
  }

  #commandRow({ command, node, action }: CommandTarget, detail: string): JournalChange {
    const target = { order: command, operator: this.#operator, node: node ?? null, action: action ?? null };
    return { kind: "order", row: { at: this.#state.now(), ...target, detail } };
  }

  #awaitingAction(id: string): Result<Action, CommandRejection> {
    const action = this.#state.records.action(id);
    if (action === null) return reject("not_found", `there is no action ${id}: "approvals" lists those that wait`);
    if (action.state !== "awaiting")
      return reject("conflict", `${id} does not wait for approval: it is ${action.state}`);
    const expiry = approvalExpiry(this.#deps.context, action);
    return expiry === null ? ok(action) : reject("conflict", `${id} has expired: ${expiry}`);
  }

  /** Returns the number of operators' holds on nodes other than this one that are not listed. */
  #unlistedHolds(node: NodeId): number {
    const isCounted = (hold: NodeHold) => hold.kind === "held" && hold.node !== node && !this.#isListed(hold.node);
    return this.#state.records.allHolds().filter(isCounted).length;
  }

  #nameOf(node: NodeId): string {
    return this.#deps.context.observed.nameOf(node);
  }

  #isListed(node: NodeId): boolean {
    return this.#deps.context.observed.slotOf(node) !== null;
  }

  #answer(): Pick<Action, "answered"> {
    return this.#operator === null ? {} : { answered: { operator: this.#operator, at: this.#state.now() } };
  }

  #operatorField(): { readonly operator?: string } {
    return this.#operator === null ? {} : { operator: this.#operator };
  }
}

const plan = (target: CommandTarget, changes: readonly JournalChange[], reply: string, apply = () => {}): Planned =>
  ok({ target, changes, reply, apply });

const suffix = (reason: string): string => (reason === "" ? "" : `: ${reason}`);

const reject = (kind: CommandRejection["kind"], message: string): Result<never, CommandRejection> =>
  fail({ kind, message });
