import type { Dashboard, Panel } from "@grafana/grafana-foundation-sdk/dashboard";
import { compiledDashboards } from "../../../grafana/main.ts";

/** A query of a dashboard, as its file has it. */
export interface DashboardQuery {
  /** The dashboard, and the panel, annotation or variable. */
  readonly where: string;
  readonly expr: string;
  readonly legend: string | null;
  /** The last value alone. */
  readonly instant: boolean;
}

/** The dashboards by their files. */
export const dashboards: ReadonlyMap<string, Dashboard> = new Map(
  compiledDashboards().map(({ file, dashboard }) => [file, dashboard]),
);

interface Target {
  readonly expr?: string;
  readonly instant?: boolean;
  readonly legendFormat?: string;
  readonly rawSql?: string;
  readonly format?: "table" | "time_series";
}

const isPanel = (panel: NonNullable<Dashboard["panels"]>[number]): panel is Panel => panel.type !== "row";

/** The panels of a dashboard, rows left out. */
export const panelsOf = ({ panels = [] }: Dashboard): readonly Panel[] =>
  panels.flatMap((panel) => (isPanel(panel) ? [panel] : panel.panels)).filter(isPanel);

const targetsOf = (file: string, dashboard: Dashboard) =>
  panelsOf(dashboard).flatMap(({ title, targets = [] }) =>
    (targets as unknown as readonly Target[]).map((target) => ({ where: `${file}: ${title}`, target })),
  );

/** Every PromQL query of a dashboard: of its panels, its annotations and its variables. */
export function queriesOf(file: string, dashboard: Dashboard): readonly DashboardQuery[] {
  const ofPanels = targetsOf(file, dashboard).flatMap(({ where, target }) =>
    target.expr === undefined ? [] : [queryOf(where, target)],
  );
  const ofAnnotations = (dashboard.annotations.list ?? []).map(({ name, target }) =>
    queryOf(`${file}: annotation ${name}`, target as unknown as Target),
  );
  const ofVariables = (dashboard.templating.list ?? []).flatMap(({ name, query }) => {
    const asked = typeof query === "object" ? String(query.query) : "";
    const expr = /^(?:label_values\((.*), \w+\)|query_result\((.*)\))$/.exec(asked);
    if (expr === null) return [];
    return [{ where: `${file}: variable ${name}`, expr: expr[1] ?? expr[2]!, legend: null, instant: true }];
  });
  return [...ofPanels, ...ofAnnotations, ...ofVariables];
}

/** A query of PostgreSQL, as the file of a dashboard has it. */
export interface SqlDashboardQuery {
  /** The dashboard, and the panel or variable. */
  readonly where: string;
  readonly sql: string;
  readonly format: "table" | "time_series";
}

/** Every SQL query of a dashboard: of its panels and its variables. */
export function sqlQueriesOf(file: string, dashboard: Dashboard): readonly SqlDashboardQuery[] {
  const ofPanels = targetsOf(file, dashboard).flatMap(({ where, target: { rawSql: sql, format = "table" } }) =>
    sql === undefined ? [] : [{ where, sql, format }],
  );
  const ofVariables = (dashboard.templating.list ?? []).flatMap(({ name, query }) =>
    typeof query === "string" && query.startsWith("SELECT")
      ? [{ where: `${file}: variable ${name}`, sql: query, format: "table" as const }]
      : [],
  );
  return [...ofPanels, ...ofVariables];
}

const queryOf = (where: string, { expr = "", instant = false, legendFormat }: Target): DashboardQuery => ({
  where,
  expr,
  legend: legendFormat ?? null,
  instant,
});

/** All of them. */
export const allDashboardQueries: readonly DashboardQuery[] = [...dashboards].flatMap(([file, dashboard]) =>
  queriesOf(file, dashboard),
);

/** Puts values in the place of Grafana's variables. */
export const interpolated = (expr: string, values: Readonly<Record<string, string>>): string =>
  expr.replaceAll(/\$(\w+)/g, (whole, name: string) => values[name] ?? whole);

/** Puts into SQL what Grafana puts in the place of its macros and variables. Times are ISO 8601. */
export const interpolatedSql = (
  sql: string,
  {
    from,
    to,
    policies,
    node,
  }: { readonly from: string; readonly to: string; readonly policies: readonly string[]; readonly node: string },
): string =>
  sql
    .replaceAll(/\$__timeFilter\((\w+)\)/g, `$1 BETWEEN '${from}' AND '${to}'`)
    .replaceAll(/\$__timeGroup\((\w+), \$__interval\)/g, "floor(extract(epoch from $1)/60)*60")
    .replaceAll("$__timeFrom()", `'${from}'`)
    .replaceAll("$__timeTo()", `'${to}'`)
    .replaceAll(/\$\{node:sqlstring\}/g, `'${node}'`)
    .replaceAll(/\$policy\b/g, policies.map((policy) => `'${policy}'`).join(","));

/** Values of the variables if nothing is selected. */
export const ANY = {
  instance: ".*",
  region: ".*",
  country: ".*",
  node: "node_1",
  __rate_interval: "15s",
  __interval: "5s",
} as const;
