import type { JournalChange } from "../../model/remediation/journal.ts";
import { assertJournalFact, endOf, numberOfId } from "../row-rules.ts";
import { toJsonText } from "./json-text.ts";

/** The last change of each row that one commit writes, by table. */
interface CommitBatch {
  readonly timers: Map<string, object>;
  readonly timersGone: Map<string, object>;
  readonly episodes: Map<string, object>;
  readonly actions: Map<string, object>;
  readonly holds: Map<string, object>;
  readonly holdsGone: Map<string, object>;
  readonly facts: Map<string, object>;
  readonly factsGone: Map<string, object>;
  readonly decisions: object[];
  readonly orders: object[];
}

/**
 * Returns the parameters of {@link commitStatement} after the epoch and the number, as JSON arrays. Throws for invalid
 * changes.
 */
export function commitParameters(changes: readonly JournalChange[]): readonly string[] {
  const batch: CommitBatch = {
    ...{ timers: new Map(), timersGone: new Map(), episodes: new Map(), actions: new Map() },
    ...{ holds: new Map(), holdsGone: new Map(), facts: new Map(), factsGone: new Map(), decisions: [], orders: [] },
  };
  for (const change of changes) addChange(batch, change);
  const { timers, timersGone, episodes, actions, holds, holdsGone, facts, factsGone, decisions, orders } = batch;
  return [timers, timersGone, episodes, actions, holds, holdsGone, facts, factsGone, decisions, orders].map((rows) =>
    toJsonText([...rows.values()]),
  );
}

function addChange(batch: CommitBatch, change: JournalChange): void {
  switch (change.kind) {
    case "timer": {
      const { node, policy, state, trueMs, clearMs, since, nodeCreatedAt = null } = change.row;
      const times = { true_ms: trueMs, clear_ms: clearMs, since, node_created_at: nodeCreatedAt };
      return void put(batch.timers, batch.timersGone, rowKey(node, policy), { node, policy, state, ...times });
    }
    case "timer_gone":
      return void put(batch.timersGone, batch.timers, rowKey(change.node, change.policy), change);
    case "episode": {
      const { id, policy, node, state, openedAt, closedAt } = change.row;
      const columns = { number: numberOfId(id), id, policy, node, state, opened_at: openedAt, closed_at: closedAt };
      return void batch.episodes.set(id, { ...columns, body: change.row });
    }
    case "action": {
      const { id, episode, policy, node, state, createdAt } = change.row;
      const columns = { number: numberOfId(id), id, episode, policy, node, state };
      const times = { created_at: createdAt, over_at: endOf(change.row) };
      return void batch.actions.set(id, { ...columns, ...times, body: change.row });
    }
    case "decision":
      return void batch.decisions.push(change.row);
    case "order":
      return void batch.orders.push(change.row);
    case "hold": {
      const { node, until } = change.row;
      const policy = change.row.policy ?? "";
      return void put(batch.holds, batch.holdsGone, rowKey(node, policy), {
        ...{ node, policy, ends_at: until, body: change.row },
      });
    }
    case "hold_gone": {
      const [node, policy] = [change.node, change.policy ?? ""];
      return void put(batch.holdsGone, batch.holds, rowKey(node, policy), { node, policy });
    }
    case "fact": {
      const { key, value } = change;
      assertJournalFact(key);
      if (value === null) return void put(batch.factsGone, batch.facts, key, { key });
      return void put(batch.facts, batch.factsGone, key, { key, value });
    }
    default:
      throw new Error(`unknown kind of journal change: ${(change satisfies never as JournalChange).kind}`);
  }
}

function put(rows: Map<string, object>, others: Map<string, object>, key: string, row: object): void {
  others.delete(key);
  rows.set(key, row);
}

const rowKey = (node: string, policy: string): string => JSON.stringify([node, policy]);

/**
 * Returns the statement of a commit to the schema `s`, which is quoted. One statement is one transaction and one round
 * trip. It writes nothing unless `$1` is the epoch of a lease that has not ended, and no later commit than `$2` was
 * written. FOR SHARE makes a daemon that takes over the lease wait for this commit. It returns `fenced`, whether the
 * lease was held; `placed`, whether the changes were written; and the current `epoch`.
 */
export const commitStatement = (s: string): string => `
  WITH fence AS MATERIALIZED (
    SELECT epoch FROM ${s}.leases WHERE epoch = $1 AND expires_at > clock_timestamp() FOR SHARE
  ), place AS (
    UPDATE ${s}.last_commit SET epoch = $1, number = $2
    WHERE EXISTS (SELECT FROM fence) AND (epoch, number) < ($1::bigint, $2::bigint) RETURNING number
  ), timers_put AS (
    INSERT INTO ${s}.timers (node, policy, state, true_ms, clear_ms, since, node_created_at)
    SELECT r.* FROM jsonb_to_recordset($3::jsonb) AS r(node text, policy text, state text, true_ms float8,
      clear_ms float8, since float8, node_created_at float8) WHERE EXISTS (SELECT FROM place)
    ON CONFLICT (node, policy) DO UPDATE SET state = excluded.state, true_ms = excluded.true_ms,
      clear_ms = excluded.clear_ms, since = excluded.since, node_created_at = excluded.node_created_at
  ), timers_gone AS (
    DELETE FROM ${s}.timers AS t USING jsonb_to_recordset($4::jsonb) AS r(node text, policy text)
    WHERE t.node = r.node AND t.policy = r.policy AND EXISTS (SELECT FROM place)
  ), episodes_put AS (
    INSERT INTO ${s}.episodes (number, id, policy, node, state, opened_at, closed_at, body)
    SELECT r.* FROM jsonb_to_recordset($5::jsonb) AS r(number bigint, id text, policy text, node text, state text,
      opened_at float8, closed_at float8, body jsonb) WHERE EXISTS (SELECT FROM place)
    ON CONFLICT (id) DO UPDATE SET policy = excluded.policy, node = excluded.node, state = excluded.state,
      opened_at = excluded.opened_at, closed_at = excluded.closed_at, body = excluded.body
  ), actions_put AS (
    INSERT INTO ${s}.actions (number, id, episode, policy, node, state, created_at, over_at, body)
    SELECT r.* FROM jsonb_to_recordset($6::jsonb) AS r(number bigint, id text, episode text, policy text, node text,
      state text, created_at float8, over_at float8, body jsonb) WHERE EXISTS (SELECT FROM place)
    ON CONFLICT (id) DO UPDATE SET episode = excluded.episode, policy = excluded.policy, node = excluded.node,
      state = excluded.state, created_at = excluded.created_at, over_at = excluded.over_at, body = excluded.body
  ), holds_put AS (
    INSERT INTO ${s}.holds (node, policy, ends_at, body)
    SELECT r.* FROM jsonb_to_recordset($7::jsonb) AS r(node text, policy text, ends_at float8, body jsonb)
    WHERE EXISTS (SELECT FROM place)
    ON CONFLICT (node, policy) DO UPDATE SET ends_at = excluded.ends_at, body = excluded.body
  ), holds_gone AS (
    DELETE FROM ${s}.holds AS h USING jsonb_to_recordset($8::jsonb) AS r(node text, policy text)
    WHERE h.node = r.node AND h.policy = r.policy AND EXISTS (SELECT FROM place)
  ), facts_put AS (
    INSERT INTO ${s}.facts (key, value)
    SELECT r.* FROM jsonb_to_recordset($9::jsonb) AS r(key text, value text) WHERE EXISTS (SELECT FROM place)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
  ), facts_gone AS (
    DELETE FROM ${s}.facts AS f USING jsonb_to_recordset($10::jsonb) AS r(key text)
    WHERE f.key = r.key AND EXISTS (SELECT FROM place)
  ), decisions_add AS (
    INSERT INTO ${s}.decisions (at, policy, node, episode, verdict, body)
    SELECT (r.body->>'at')::float8, r.body->>'policy', r.body->>'node', r.body->>'episode', r.body->>'verdict', r.body
    FROM jsonb_array_elements($11::jsonb) WITH ORDINALITY AS r(body, n) WHERE EXISTS (SELECT FROM place) ORDER BY r.n
  ), orders_add AS (
    INSERT INTO ${s}.orders (at, node, body)
    SELECT (r.body->>'at')::float8, r.body->>'node', r.body
    FROM jsonb_array_elements($12::jsonb) WITH ORDINALITY AS r(body, n) WHERE EXISTS (SELECT FROM place) ORDER BY r.n
  )
  SELECT EXISTS (SELECT FROM fence) AS fenced, EXISTS (SELECT FROM place) AS placed,
    (SELECT max(epoch) FROM ${s}.leases) AS epoch`;
