import type { JournalChange } from "../../model/remediation/journal.ts";
import { type RowChange, rowChangeOf, WRITES } from "../row-changes.ts";
import { toJsonText } from "./database.ts";

/**
 * Returns the parameters of {@link commitStatement} after the epoch and the number: for each of {@link WRITES} a JSON
 * array. Only the last change of each row is written. Throws for invalid changes.
 */
export function commitParameters(changes: readonly JournalChange[]): readonly string[] {
  const last = new Map<string | number, RowChange>();
  for (const [index, change] of changes.entries()) {
    const rowChange = rowChangeOf(change);
    last.set(rowChange.key ?? index, rowChange);
  }
  const writes = Object.groupBy(last.values(), ({ write }) => write);
  return WRITES.map((write) => toJsonText((writes[write] ?? []).map(({ columns, body }) => ({ ...columns, body }))));
}

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
    SELECT (r.entry->>'at')::float8, r.entry->>'policy', r.entry->>'node', r.entry->>'episode', r.entry->>'verdict', r.entry->'body'
    FROM jsonb_array_elements($11::jsonb) WITH ORDINALITY AS r(entry, n) WHERE EXISTS (SELECT FROM place) ORDER BY r.n
  ), orders_add AS (
    INSERT INTO ${s}.orders (at, node, body)
    SELECT (r.entry->>'at')::float8, r.entry->>'node', r.entry->'body'
    FROM jsonb_array_elements($12::jsonb) WITH ORDINALITY AS r(entry, n) WHERE EXISTS (SELECT FROM place) ORDER BY r.n
  )
  SELECT EXISTS (SELECT FROM fence) AS fenced, EXISTS (SELECT FROM place) AS placed,
    (SELECT max(epoch) FROM ${s}.leases) AS epoch`;
