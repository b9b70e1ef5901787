import { fail, ok, type Result } from "../base/result.ts";
import type { Action } from "../model/episode.ts";
import type { Change } from "../model/journal.ts";
import type { OrderRefusal, Orders } from "./explanation.ts";
import type { SightKeeper } from "./sighting.ts";
import { PAUSED, type Situation } from "./situation.ts";
import { noteAction } from "./transitions.ts";
import { slotOf, type Ward } from "./ward.ts";

/** What people may order. An order that can't be written down is not taken: it would be forgotten. */
export function createOrders(ward: Ward, situation: Situation, sight: SightKeeper, onOrder: () => void): Orders {
  const { books, log } = ward;
  const { casebook } = books;

  function write(changes: readonly Change[], said: string, adopt = () => {}): Result<string, OrderRefusal> {
    if (!books.commit(changes)) {
      return refuse("journal", `the journal can't be written: ${books.problem()}; nothing has changed`);
    }
    adopt();
    log.info({ order: said }, "an order was taken");
    onOrder();
    return ok(said);
  }

  function waiting(id: string): Result<Action, OrderRefusal> {
    const action = casebook.action(id);
    if (action === null) return refuse("not_found", `there is no action ${id}`);
    if (action.state === "awaiting") return ok(action);
    return refuse("conflict", `${id} does not wait for approval: it is ${action.state}`);
  }

  return {
    pause(reason) {
      const value = JSON.stringify({ at: books.now(), reason });
      return write([{ kind: "fact", key: PAUSED, value }], `paused: ${reason}; no node is touched until resume`);
    },
    resume() {
      if (casebook.fact(PAUSED) === null) return ok("it was not paused");
      return write([{ kind: "fact", key: PAUSED, value: null }], "resumed");
    },
    approve(id) {
      const action = waiting(id);
      if (!action.ok) return action;
      const { request, node } = action.value;
      const said = `${id} is approved: ${request.kind} of ${node}, as soon as nothing else holds it`;
      return write([noteAction({ ...action.value, state: "approved" })], said);
    },
    reject(id, reason) {
      const action = waiting(id);
      if (!action.ok) return action;
      const detail = `a person rejected ${id}${reason === "" ? "" : `: ${reason}`}`;
      const row: Action = { ...action.value, state: "rejected", endedAt: books.now(), detail };
      return write([noteAction(row)], `${id} is rejected; the step is not asked for again in this episode`);
    },
    hold(node, reason) {
      if (slotOf(ward, node) === null) {
        return refuse("not_found", `there is no node ${JSON.stringify(node)} in the fleet`);
      }
      const detail = reason === "" ? "a person holds it" : `a person holds it: ${reason}`;
      const row = { node, policy: null, kind: "held", at: books.now(), until: null, reason: detail } as const;
      return write([{ kind: "hold", row }], `${node} is held: it is not touched until release`);
    },
    release(node) {
      const holds = casebook.holds(node);
      if (holds.length === 0) return refuse("not_found", `nobody holds ${JSON.stringify(node)}`);
      const changes = holds.map(({ policy }): Change => ({ kind: "hold_gone", node, policy }));
      return write(changes, `${node} is released`);
    },
    resetBreaker() {
      if (situation.breaker().open === null) return refuse("conflict", "the breaker is not open");
      const { changes, adopt } = situation.resetBreaker();
      return write(changes, "the breaker is closed, and counts from zero", adopt);
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
      return write(changes, `the inventory is measured by the ${walk.met} nodes of now${without}`, adopt);
    },
  };
}

const refuse = (kind: OrderRefusal["kind"], message: string): Result<never, OrderRefusal> => fail({ kind, message });
