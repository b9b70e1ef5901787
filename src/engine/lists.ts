import type { Clock } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { ServiceClient } from "../service/client.ts";
import { type Call, listNodes, listSessions, type PageQuery } from "../service/endpoints.ts";
import { type PageHabits, type Walk, walkPages } from "../service/pages.ts";
import { type OnRemark, readNodeRecord, readPage, readSessionRecord } from "../service/wire.ts";
import type { Account, Outcome } from "./account.ts";
import type { Inventory } from "./inventory.ts";
import type { SessionFold } from "./sessionfold.ts";

/** What a walk needs beside the list itself. */
export interface ListParts {
  readonly client: ServiceClient;
  readonly clock: Clock;
  readonly account: Account;
  readonly habits: PageHabits;
}

/** Sessions come and go while they are walked: a walk that met 99 % of the total has met them all. */
const SESSIONS_SHARE = 0.99;

/** Walks the nodes into the inventory. */
export async function collectNodes(parts: ListParts, inventory: Inventory, signal: AbortSignal): Promise<Outcome> {
  let nameless = 0;
  let rejected = 0;
  const fold = (record: unknown, at: MonotonicMs, onRemark: OnRemark): boolean => {
    let skipped: string | null = null;
    const node = readNodeRecord(record, (remark) => {
      skipped = remark.id;
      onRemark(remark);
    });
    if (node !== null) return inventory.list(node, at);
    rejected++;
    if (skipped !== null) return inventory.meet(skipped);
    nameless++;
    return true;
  };
  const outcome = await walkList(parts, listNodes, fold, 1, signal);
  inventory.endWalk({ complete: outcome.complete, nameless, rejected }, parts.clock.monotonic());
  return outcome;
}

/** Walks the sessions into the fold. */
export async function collectSessions(
  parts: ListParts,
  sessions: SessionFold,
  inventory: Inventory,
  signal: AbortSignal,
): Promise<Outcome> {
  sessions.beginWalk(parts.client.serviceTime(parts.clock.monotonic()) ?? parts.clock.now());
  const fold = (record: unknown, _at: MonotonicMs, onRemark: OnRemark): boolean => {
    const session = readSessionRecord(record, onRemark);
    // One that can't be read still accounts for one of the total.
    return session === null ? true : sessions.add(session);
  };
  const outcome = await walkList(parts, listSessions, fold, SESSIONS_SHARE, signal);
  sessions.endWalk(outcome.complete, parts.clock.monotonic(), (id) => inventory.has(id));
  return outcome;
}

async function walkList(
  { client, account, habits }: ListParts,
  list: (query: PageQuery) => Call,
  foldRecord: (record: unknown, at: MonotonicMs, onRemark: OnRemark) => boolean,
  share: number,
  signal: AbortSignal,
): Promise<Outcome> {
  const walk: Walk = {
    habits,
    share,
    async fetch(query, pageSignal) {
      const answer = await client.get(list(query), "walk", pageSignal);
      if (!answer.ok) return answer;
      const page = readPage(answer.value.json);
      return page.ok ? { ok: true, value: { page: page.value, at: answer.value.at } } : page;
    },
    fold: (records, at) =>
      records.reduce<number>((met, record) => met + (foldRecord(record, at, account.remark) ? 1 : 0), 0),
  };
  const walked = await walkPages(walk, signal);
  if (!walked.ok) return { complete: false, error: walked.error };
  const { complete, error, seen, total, drifted } = walked.value;
  if (complete || error !== null) return { complete, error };
  const why = drifted ? "; it changed while it was walked" : "";
  const message = `the list showed ${seen} of the ${total} records that it counts${why}`;
  return { complete, error: { kind: "incomplete", message } };
}
