import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defaultDashboard } from "@grafana/schema";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { UIDS } from "../../../grafana/dashboard.ts";
import { compiledDashboards, dashboardFiles } from "../../../grafana/main.ts";
import { staleFiles } from "../../../scripts/generated-files.ts";
import { DAEMON_FAMILIES } from "../../../src/metrics/families/daemon-families.ts";
import { networkFamilyNames } from "../../../src/metrics/families/network-families.ts";
import { catalogOfRules, catalogOfScrape, familyOf, findExpressionProblems } from "../metric-catalogue.ts";
import { textOf } from "../repository-files.ts";
import { seriesReadBy } from "../rule-files.ts";
import { ANY, allDashboardQueries, dashboards, interpolated, panelsOf, queriesOf } from "./dashboard-files.ts";

const inGrafana = (path: string) => fileURLToPath(new URL(`../../../grafana/${path}`, import.meta.url));
const everyDashboard = [...dashboards];

test("the committed dashboards match the sources: npm run dashboards writes them", () => {
  expect(staleFiles(dashboardFiles()).map(({ path }) => path)).toEqual([]);
  expect(readdirSync(inGrafana("dashboards")).toSorted()).toEqual(compiledDashboards().map(({ file }) => file));
});

test("every query is PromQL, and names only existing families, labels and label values", async () => {
  const catalogue = await catalogOfRules();
  const problems = allDashboardQueries.flatMap(({ where, expr }) =>
    findExpressionProblems(interpolated(expr, ANY), catalogue).map((problem) => `${where}: ${problem}`),
  );
  expect(problems).toEqual([]);
  expect(allDashboardQueries.length).toBeGreaterThan(100);
});

test("a query with an unknown name is detected", async () => {
  const catalogue = await catalogOfScrape();
  expect(
    [
      "sum(",
      "proxynet_node",
      'proxynet_nodes{node_id="a"}',
      'proxynet_nodes{status="gone"}',
      'proxynet_sessions{status=~"error|late"}',
      'proxywarden_episodes{state!="over"}',
      "sum by (node_id) (proxynet_nodes)",
      "proxynet_session_duration_seconds",
      "sum by (region) (proxynet_nodes{instance=~'a'})",
    ].map((query) => findExpressionProblems(query, catalogue).join("; ")),
  ).toEqual([
    "not PromQL: sum( ⚠ ",
    "there is no proxynet_node",
    "proxynet_nodes has no label node_id",
    "status of proxynet_nodes is never gone",
    "status of proxynet_sessions is never late",
    "state of proxywarden_episodes is never over",
    "nothing here has a label node_id",
    "there is no proxynet_session_duration_seconds",
    "",
  ]);
});

test("every family is on a dashboard, and every family of nodes is on the node's dashboard", () => {
  const named = (queries: typeof allDashboardQueries) => {
    const series = [...seriesReadBy(queries.map(({ expr }) => interpolated(expr, ANY)))];
    return new Set([...series, ...series.map(familyOf)]);
  };
  const shown = named(allDashboardQueries);
  expect([...networkFamilyNames(), ...Object.keys(DAEMON_FAMILIES)].filter((name) => !shown.has(name))).toEqual([]);
  const onNode = named(queriesOf("node.json", dashboards.get("node.json")!));
  expect(networkFamilyNames().filter((name) => name.startsWith("proxynet_node_") && !onNode.has(name))).toEqual([]);
});

test("the schema is that of the Grafana which compose.yaml starts", () => {
  const { services } = parse(textOf("compose.yaml")) as { services: { grafana: { image: string } } };
  const { version } = JSON.parse(textOf("node_modules/@grafana/schema/package.json")) as { version: string };
  expect(services.grafana.image).toBe(`grafana/grafana:${version}`);
  for (const [file, { schemaVersion }] of everyDashboard)
    expect(schemaVersion, file).toBe(defaultDashboard.schemaVersion);
});

const legendCalcs = (options: unknown) =>
  (options as { readonly legend: { readonly calcs: readonly string[] } }).legend.calcs;

const AUDIT_SOURCE = { type: "grafana-postgresql-datasource", uid: ["$", "{journal}"].join("") };

describe.each(everyDashboard)("%s", (file, dashboard) => {
  const panels = panelsOf(dashboard);

  test("every panel has a description, a unit and the selected data source", () => {
    for (const { title, description, fieldConfig, datasource, targets = [] } of panels) {
      expect(title).toMatch(/^\S.*\S$/);
      expect(description, title).toMatch(/^[A-Z].{20,}\.$/s);
      expect(fieldConfig?.defaults.unit, title).toBeTruthy();
      const source = file === "audit.json" ? AUDIT_SOURCE : { type: "prometheus", uid: ["$", "{datasource}"].join("") };
      for (const target of [{ datasource }, ...targets]) expect(target, title).toMatchObject({ datasource: source });
      expect(targets.length, title).toBeGreaterThan(0);
    }
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });

  test("panels fill the grid without overlapping", () => {
    const top = dashboard.panels ?? [];
    for (const shown of [top, ...top.flatMap((panel) => ("panels" in panel ? [panel.panels] : []))]) {
      const taken = new Set<string>();
      for (const { title, gridPos } of shown) {
        const { x, y, w, h } = gridPos!;
        expect(x + w, title).toBeLessThanOrEqual(24);
        for (let column = x; column < x + w; column++) {
          for (let row = y; row < y + h; row++) {
            expect(taken, title).not.toContain(`${column},${row}`);
            taken.add(`${column},${row}`);
          }
        }
      }
    }
  });

  test("every panel has a text for missing values, and every legend of lines has values", () => {
    for (const { title, type, fieldConfig, options } of panels) {
      expect(fieldConfig?.defaults.noValue, title).toMatch(/^[A-Z].*[^.]$/);
      if (type === "timeseries") expect(legendCalcs(options), title).not.toEqual([]);
    }
  });

  test("counts of events are whole numbers, and each event is counted once", () => {
    for (const { title, fieldConfig, options, targets = [] } of panels) {
      for (const { expr = "" } of targets as readonly { readonly expr?: string }[]) {
        const isRounded =
          expr.startsWith("round(") || expr.includes("histogram_quantile(") || expr.includes("_bytes_total");
        if (!isRounded) expect(expr, title).not.toContain("increase(");
        if (!expr.includes("offset $__interval")) continue;
        expect(fieldConfig?.defaults.decimals, title).toBe(0);
        expect(legendCalcs(options), title).toEqual(["sum"]);
      }
    }
  });

  test("remaining amounts are never negative", () => {
    for (const { title, targets = [] } of panels.filter((panel) => /resets? in|ends in| left$/.test(panel.title!))) {
      for (const { expr } of targets as readonly { readonly expr?: string }[])
        expect(expr, title).toMatch(/^clamp_min\(/);
    }
  });

  test("a single number is the current one, and is absent if the metric is no longer exported", () => {
    const queries = queriesOf(file, dashboard);
    for (const { title } of panels.filter(({ type }) => type === "stat")) {
      for (const { expr, instant } of queries.filter(({ where }) => where === `${file}: ${title}`))
        expect(instant || expr.endsWith(" @ end())"), title).toBe(true);
    }
  });

  test("only its first row is open", () => {
    const rows = (dashboard.panels ?? []).filter((panel) => "collapsed" in panel);
    expect(rows.map(({ collapsed }) => collapsed)).toEqual(rows.map((_, index) => index > 0));
    expect(rows.length).toBeGreaterThan(1);
  });

  test("alerts and actions are marked on its panels, except those of the journal", () => {
    const names = dashboard.annotations.list?.map(({ name }) => name) ?? [];
    const marked = ["Actions", "Alerts"].filter((name) => names.includes(name));
    expect(marked).toEqual(file === "audit.json" ? [] : ["Actions", "Alerts"]);
  });

  test("it has the variables of its queries, and links to the other dashboards with them", () => {
    const variables = dashboard.templating.list!.map(({ name }) => name);
    const used = new Set(JSON.stringify(dashboard).match(/(?<=\$\{?)[a-z]\w*/g));
    expect([...used].toSorted()).toEqual(variables.toSorted());
    expect(dashboard.links![0]).toMatchObject({ type: "dashboards", includeVars: true, keepTime: true });
    expect(dashboard.tags).toEqual(dashboard.links![0]!.tags);
  });
});

test("the lists of nodes link to the node's dashboard and to its explanation, and so does that dashboard", () => {
  const linkedTo = (address: string) =>
    everyDashboard.flatMap(([file, dashboard]) =>
      panelsOf(dashboard)
        .filter((panel) => JSON.stringify(panel).includes(address))
        .map(({ title }) => `${file}: ${title}`),
    );
  const linked = linkedTo(`/d/${UIDS.node}?`);
  const explained = ["$", "{status_page}/#node/$", "{__value.raw}"].join("");
  expect(linkedTo(explained)).toEqual(linked);
  expect(dashboards.get("node.json")!.links![1]!.url).toBe(explained.replace("__value.raw", "node"));
  expect(linked).toEqual([
    ...["Operator commands and reloads", "Approvals and rejections", "Actions", "Episodes", "Decisions"].map(
      (title) => `audit.json: ${title}`,
    ),
    "daemon.json: Open episodes",
    "network.json: Unhealthy nodes",
  ]);
  expect(everyDashboard.map(([, { uid }]) => uid).toSorted()).toEqual(Object.values(UIDS).toSorted());
});

test("Grafana is provisioned with the data sources and with the folder that the dashboards are mounted in", () => {
  const read = (path: string) => parse(readFileSync(inGrafana(`provisioning/${path}`), "utf8")) as unknown;
  expect(read("datasources/prometheus.yaml")).toMatchObject({
    apiVersion: 1,
    datasources: [{ type: "prometheus", access: "proxy", url: "http://prometheus:9090", isDefault: true }, {}],
  });
  expect(read("datasources/postgres.yaml")).toMatchObject({
    apiVersion: 1,
    datasources: [{ type: AUDIT_SOURCE.type, access: "proxy", url: "postgres:5432" }],
  });
  expect(read("dashboards/proxywarden.yaml")).toMatchObject({
    apiVersion: 1,
    providers: [{ type: "file", options: { path: "/var/lib/grafana/dashboards" } }],
  });
});
