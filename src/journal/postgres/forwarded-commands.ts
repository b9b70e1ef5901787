import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { CommandReply, OperatorCommand } from "../../model/remediation/operator-command.ts";
import type { ForwardedCommands } from "../../model/shared-state.ts";
import { type Database, toJsonText } from "./database.ts";

/** A command lapses if no leader takes it within this time, because its subject may have changed. */
const LAPSE_MS: DurationMs = 10 * MINUTE_MS;
/** Rows are deleted after this time. */
const RETENTION = "1 day";

/** Creates the access to forwarded commands in a database whose schema is current. */
export function createForwardedCommands(database: Database): ForwardedCommands {
  const table = `${database.schema}.forwarded_orders`;
  return {
    async submit(order) {
      const sql = `INSERT INTO ${table} (body) VALUES ($1::jsonb) RETURNING id`;
      const [row] = await database.query(sql, [toJsonText(order)]);
      return Number(row!.id);
    },
    async reply(id) {
      const [row] = await database.query(`SELECT reply FROM ${table} WHERE id = $1`, [id]);
      return (row?.reply ?? null) as CommandReply | null;
    },
    async pending() {
      const rows = await database.query(
        `SELECT id, body FROM ${table}
         WHERE reply IS NULL AND created_at > clock_timestamp() - $1 * interval '1 millisecond' ORDER BY id`,
        [LAPSE_MS],
      );
      return rows.map(({ id, body }) => ({ ...(body as OperatorCommand), id: Number(id) }));
    },
    async answer(id, reply) {
      await database.query(`UPDATE ${table} SET reply = $2::jsonb WHERE id = $1`, [id, toJsonText(reply)]);
      await database.query(`DELETE FROM ${table} WHERE created_at < clock_timestamp() - interval '${RETENTION}'`);
    },
  };
}
