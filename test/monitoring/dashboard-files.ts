import type { Dashboard, Panel } from "@grafana/grafana-foundation-sdk/dashboard";
import { compiledDashboards } from "../../grafana/main.ts";

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
  readonly expr: string;
  readonly instant?: boolean;
  readonly legendFormat?: string;
}

const isPanel = (panel: NonNullable<Dashboard["panels"]>[number]): panel is Panel => panel.type !== "row";

/** The panels of a dashboard, rows left out. */
export const panelsOf = ({ panels = [] }: Dashboard): readonly Panel[] =>
  panels.flatMap((panel) => (isPanel(panel) ? [panel] : panel.panels)).filter(isPanel);

/** Every query of a dashboard: of its panels, its annotations and its variables. */
export function queriesOf(file: string, dashboard: Dashboard): readonly DashboardQuery[] {
  const ofPanels = panelsOf(dashboard).flatMap(({ title, targets = [] }) =>
    (targets as unknown as readonly Target[]).map((target) => queryOf(`${file}: ${title}`, target)),
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

const queryOf = (where: string, { expr, instant = false, legendFormat }: Target): DashboardQuery => ({
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

/** What the variables stand for where nothing is chosen. */
export const ANY = { instance: ".*", region: ".*", country: ".*", node: "node_1", __rate_interval: "15s" } as const;
