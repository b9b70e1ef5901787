import { fail, ok, type Result } from "../base/result.ts";
import type { Action } from "../model/remediation/episode.ts";
import type { Change } from "../model/remediation/journal.ts";
import type { NodeId } from "../model/node.ts";
import type { OrderName } from "../model/remediation/operator-command.ts";
import { expiryOf } from "./evaluation/candidates.ts";
import type { OrderRefusal, Orders } from "./status/views.ts";
import type { SightKeeper } from "./evaluation/inventory-trust.ts";
import { PAUSED, type Situation } from "./evaluation/fleet-health.ts";
import { acceptLosses, lostNodes, noteAction } from "./execution/episode-transitions.ts";
import { active, efficacySinceFact, fallenFact, slotOf, type Ward } from "./context.ts";

/** What orders read and change. */
export interface OrdersParts {
  readonly ward: Ward;
  readonly situation: Situation;
  readonly sight: SightKeeper;
  /** Called after each order that was carried out. */
  onOrder(): void;
}

/** An order to be written down: its name, and what it is about. */
interface Subject {
  readonly order: OrderName;
  readonly node?: NodeId | null;
  readonly action?: string | null;
}

/**
 * Nodes that are not listed can be held in advance, at most so many: a hold lasts until it is released, and an id that
 * was mistyped is never listed.
 */
export const UNLISTED_HOLDS_MAX = 100;

/**
 * Creates the orders of one operator; null: no operators are configured. An order that can't be journalled is refused, because it
 * would be forgotten.
 */
export function createOrders(parts: OrdersParts, operator: string | null = null): Orders {
  const { ward, situation, sight, onOrder } = parts;
  const { books } = ward;
  const { casebook } = books;
  const who = operator ?? "an operator";
  const named = operator === null ? {} : { operator };

  const orderRow = ({ order, node = null, action = null }: Subject, detail: string): Change => ({
    kind: "order",
    row: { at: books.now(), order, operator, node, action, detail },
  });

  function write(
    subject: Subject,
    changes: readonly Change[],
    said: string,
    adopt = () => {},
  ): Result<string, OrderRefusal> {
    if (!books.commit([...changes, orderRow(subject, said)])) {
      return refuse("journal", `the journal can't be written: ${books.problem()}; nothing has changed`);
    }
    adopt();
    onOrder();
    return ok(said);
  }

  function waiting(id: string): Result<Action, OrderRefusal> {
    const action = casebook.action(id);
    if (action === null) return refuse("not_found", `there is no action ${id}`);
    const expiry = expiryOf(ward, action);
    if (action.state === "awaiting" && expiry === null) return ok(action);
    if (action.state === "awaiting") return refuse("conflict", `${id} has expired: ${expiry}`);
    return refuse("conflict", `${id} does not wait for approval: it is ${action.state}`);
  }

  /** Nodes other than this one that operators hold and that are not listed. */
  const unlistedHolds = (node: NodeId): number =>
    casebook.allHolds().filter((hold) => hold.kind === "held" && hold.node !== node && slotOf(ward, hold.node) === null)
      .length;

  const answered = (action: Action): Action =>
    operator === null ? action : { ...action, answered: { operator, at: books.now() } };

  return {
    of: (name) => createOrders(parts, name),
    pause(reason) {
      const value = JSON.stringify({ at: books.now(), reason, ...named });
      const said = `paused: ${reason}; no node is touched until resume`;
      return write({ order: "pause" }, [{ kind: "fact", key: PAUSED, value }], said);
    },
    resume() {
      if (casebook.fact(PAUSED) === null) return ok("it was not paused");
      return write({ order: "resume" }, [{ kind: "fact", key: PAUSED, value: null }], "resumed");
    },
    approve(id) {
      const action = waiting(id);
      if (!action.ok) return action;
      const { request, node } = action.value;
      const said = `${id} is approved: ${request.kind} of ${node}, as soon as nothing else holds it`;
      const row: Action = { ...answered(action.value), state: "approved", approvedAt: books.now() };
      return write({ order: "approve", node, action: id }, [noteAction(row)], said);
    },
    reject(id, reason) {
      const action = waiting(id);
      if (!action.ok) return action;
      const because = reason === "" ? "" : `: ${reason}`;
      const detail = `${who} rejected ${id}${because}`;
      const row: Action = { ...answered(action.value), state: "rejected", endedAt: books.now(), detail };
      const said = `${id} is rejected${because}; the step is not asked for again in this episode`;
      return write({ order: "reject", node: row.node, action: id }, [noteAction(row)], said);
    },
    hold(node, reason) {
      const isListed = slotOf(ward, node) !== null;
      if (!isListed && unlistedHolds(node) >= UNLISTED_HOLDS_MAX) {
        const message = `${UNLISTED_HOLDS_MAX} nodes that are not listed are held already; release one of them first`;
        return refuse("conflict", message);
      }
      const because = reason === "" ? "" : `: ${reason}`;
      const base = { node, policy: null, kind: "held", at: books.now(), until: null } as const;
      const row = { ...base, reason: `${who} holds it${because}`, ...named };
      const note = isListed ? "" : "; no node of that id is listed now, and the hold is in force once it is";
      const said = `${node} is held${because}; it is not touched until release${note}`;
      return write({ order: "hold", node }, [{ kind: "hold", row }], said);
    },
    release(node) {
      const holds = casebook.holds(node).filter(({ until }) => until === null || until > books.now());
      if (holds.length === 0) return refuse("not_found", `nobody holds ${JSON.stringify(node)}`);
      // What was tried before a node was given up counts no more: the row stays, to say since when.
      const changes = holds.map((hold): Change => {
        const { kind, policy } = hold;
        if (kind === "given_up") return { kind: "hold", row: { ...hold, until: books.now() } };
        return { kind: "hold_gone", node, policy };
      });
      const again = holds.flatMap(({ kind, policy }) => (kind === "given_up" ? (policy ?? []) : []));
      const tried = again.length === 0 ? "" : `; ${again.join(" and ")} may try it again`;
      return write({ order: "release", node }, changes, `${node} is released${tried}`);
    },
    resetBreaker() {
      const isOpen = situation.breaker().open !== null;
      const fallen = ward.policies.filter((policy) => active(ward, policy).fallen).map(({ rule }) => rule.name);
      if (!isOpen && fallen.length === 0) {
        return refuse("conflict", "the breaker is not open, and no policy has fallen back to dry_run");
      }
      const { changes, adopt } = situation.resetBreaker(fallen);
      const again = fallen.flatMap((name): Change[] => [
        { kind: "fact", key: fallenFact(name), value: null },
        { kind: "fact", key: efficacySinceFact(name), value: String(books.now()) },
      ]);
      const said = [
        ...(isOpen ? ["the breaker is closed, and counts from zero"] : []),
        ...(fallen.length === 0
          ? []
          : [
              `${fallen.join(" and ")} ${fallen.length === 1 ? "acts" : "act"} again, and its efficacy is measured anew`,
            ]),
      ];
      return write({ order: "reset-breaker" }, [...changes, ...again], said.join("; "), adopt);
    },
    acceptInventory() {
      const walk = ward.view?.snapshot.fleet.lastWalk ?? null;
      if (walk === null || walk.isCut) {
        return refuse(
          "conflict",
          "the last walk of the nodes was cut off before the end of the list: there is nothing to accept",
        );
      }
      const { changes, adopt } = sight.accept(walk.met, walk.missing);
      const without =
        walk.missing === 0 ? "" : `; ${walk.missing} that it does not show, or does not count, are accepted`;
      const lost = lostNodes(ward).size;
      const gone = lost === 0 ? "" : `; the loss of ${lost} that left the list after an action is accepted`;
      const said = `the inventory is measured by the ${walk.met} nodes of now${without}${gone}`;
      return write({ order: "accept-inventory" }, changes, said, () => {
        adopt();
        acceptLosses(ward);
      });
    },
    noteReload(problems, origin = "") {
      const rest = problems.length > 1 ? ` (and ${problems.length - 1} more problems)` : "";
      const said = problems.length === 0 ? "the new configuration is in force" : `refused: ${problems[0]}${rest}`;
      books.record([orderRow({ order: "reload" }, `${origin}${said}`)]);
    },
  };
}

const refuse = (kind: OrderRefusal["kind"], message: string): Result<never, OrderRefusal> => fail({ kind, message });
