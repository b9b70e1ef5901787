import type { Builder, Dataquery } from "@grafana/grafana-foundation-sdk/cog";

/** A panel's query in SQL, which reads the views of the journal in PostgreSQL. */
export interface SqlQuery {
  /** Grafana replaces `$__timeFilter(COLUMN)`, `$__timeGroup(COLUMN, $__interval)`, `$__timeFrom()`, `$__timeTo()` and variables. */
  readonly sql: string;
  /**
   * `table` (default): the rows; `series`: a line for each value of the column `metric`, with the columns `time` and `value`, in
   * the order of time.
   */
  readonly shape?: "table" | "series";
}

const DATASOURCE_TYPE = "grafana-postgresql-datasource";

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana replaces it by the selected value
const SELECTED = "${journal}";
/** The data source of the dashboard's variable: the database of `state.postgres`. */
export const JOURNAL = { type: DATASOURCE_TYPE, uid: SELECTED };

/** Selects the rows of the chosen policies in the time range. */
export const ofPolicies = (timeColumn: string): string => `$__timeFilter(${timeColumn}) AND policy IN ($policy)`;

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana replaces it by the quoted value
const NODE = "${node:sqlstring}";
/** Selects the rows of the chosen node, or of all nodes if none is chosen. */
export const OF_NODE = `(${NODE} = '' OR node = ${NODE})`;

/** Rows of a table. More make the browser slow. */
export const TABLE_ROWS_MAX = 500;

/** Converts a query to Grafana's. `refId` is its letter in the panel. */
export const sqlTargetOf = ({ sql, shape = "table" }: SqlQuery, refId: string): Builder<Dataquery> => ({
  build: () => {
    const target = {
      datasource: JOURNAL,
      refId,
      rawSql: sql,
      format: shape === "table" ? "table" : "time_series",
      rawQuery: true,
      editorMode: "code",
    };
    // Grafana's SDK has no type for queries of PostgreSQL.
    return target as unknown as Dataquery;
  },
});
