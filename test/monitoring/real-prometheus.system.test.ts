import { basename } from "node:path";
import { expect, test } from "vitest";
import { DAY_MS, SECOND_MS } from "../../src/base/duration.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { freePort } from "../harness/servers/free-port.ts";
import { createInterventions } from "../harness/simulator/interventions.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { type Prometheus, runPrometheus, startAlertmanager } from "../integration/prometheus/monitoring-servers.ts";
import { configText, startNetwork, startTestDaemon } from "../integration/simulated-network.ts";
import { waitUntil } from "../integration/wait-until.ts";
import { createAuthority } from "../web/http/tls/certificate-authority.ts";
import {
  ANY,
  allDashboardQueries,
  type DashboardQuery,
  dashboards,
  interpolated,
} from "./dashboards/dashboard-files.ts";
import { fastPrometheus, fastRules, textOf } from "./repository-files.ts";
import { ruleFiles } from "./rule-files.ts";

interface Rule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
  readonly state?: string;
}

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value?: readonly [number, string];
  readonly values?: readonly (readonly [number, string])[];
}

/** Long enough to have been scraped a few times, short enough to wait for. */
const SEEN_SECONDS = 60;

const rebootOffline = {
  name: "offline",
  mode: "enforce",
  when: 'node.status == "offline"',
  for: "0s",
  clear_for: "2m",
  max_age: "5m",
  steps: [{ action: "reboot", verify: { within: "20m" } }],
};

/** Starts a simulated network with everything that is shipped: daemon, Prometheus with its rules, Alertmanager. */
async function startShippedStack() {
  const never = Number.POSITIVE_INFINITY;
  const rates = { ...defaultScenario.rates, faultEveryMs: never, maintenanceEveryMs: never };
  const network = await startNetwork({ scenario: { rates } });
  const folder = createTempFolder();
  const [prometheusPort, alertmanagerPort] = [await freePort(), await freePort()];
  const [prometheusAt, alertmanagerAt] = [`127.0.0.1:${prometheusPort}`, `127.0.0.1:${alertmanagerPort}`];
  const { cert, key } = createAuthority("proxywarden tests").issue("IP:127.0.0.1");
  const tls = { cert_file: folder.write("web.crt", cert), key_file: folder.write("web.key", key) };
  const config = configText(network.url, {
    service: { timeout: "5m" },
    limits: { plan: { requests_per_minute: 10_000, concurrent_requests: 50, calls_per_month: 1_000_000 } },
    safety: { mode: "enforce", trust: { warmup_walks: 1 }, storm_cooldown: "0s" },
    policies: [folder.write("policies.yaml", JSON.stringify({ policies: [rebootOffline] }))],
    alertmanager: { url: `http://${alertmanagerAt}` },
    receivers: [{ name: "oncall", alertmanager: true }],
    web: { web_config_file: folder.write("web.yml", JSON.stringify({ tls_server_config: tls })) },
  });
  const daemon = await startTestDaemon(network.clock, config);
  const addresses = {
    proxywarden: new URL(daemon.app.url()).host,
    prometheus: prometheusAt,
    alertmanager: alertmanagerAt,
  };
  const rules = ruleFiles.map((file) => folder.write(basename(file), fastRules(textOf(file))));
  const [alertmanager, prometheus] = await Promise.all([
    startAlertmanager(alertmanagerPort, textOf("config/prometheus/alertmanager.yml")),
    runPrometheus(fastPrometheus(addresses, rules), { port: prometheusPort }),
  ]);
  await waitUntil("Prometheus has scraped all three", async () => {
    const up = await prometheus.query("up == 1");
    return up.length === 3;
  });
  return { network, daemon, prometheus, alertmanager };
}

/** Result of a query over the last minute or at its end. */
async function ask(
  prometheus: Prometheus,
  { expr, instant }: DashboardQuery,
  node: string,
): Promise<readonly Series[]> {
  const query = encodeURIComponent(interpolated(expr, { ...ANY, node }));
  const end = Date.now() / SECOND_MS;
  const path = instant
    ? `query?query=${query}`
    : `query_range?query=${query}&start=${end - SEEN_SECONDS}&end=${end}&step=1`;
  const { result } = await prometheus.get<{ result: readonly Series[] }>(path);
  const isData = ([, value]: readonly [number, string]) => value !== "NaN";
  return result.filter(({ value, values = [] }) => [...values, ...(value === undefined ? [] : [value])].some(isData));
}

const labelsIn = (legend: string): readonly string[] => legend.match(/(?<=\{\{)\w+(?=\}\})/g) ?? [];

test("on the shipped configuration of a real Prometheus every query of the dashboards has data, every rule is evaluated, and a 429 reaches the Alertmanager", async () => {
  const { network, daemon, prometheus, alertmanager } = await startShippedStack();
  expect(await daemon.app.reload()).toMatchObject({ ok: true });
  const interventions = createInterventions(network.service, network.clock.now);
  // Two nodes that have sessions, of different regions: one incident they are not.
  const busy = await waitUntil("sessions have moved bytes", async () => {
    const moved = "query?query=proxynet_session_sent_bytes_total>0";
    const { result } = await prometheus.get<{ result: readonly Series[] }>(moved);
    return result.length > 1 && result.map(({ metric }) => metric.node_id);
  });
  const nodes = [...network.service.network.fleet.nodes].filter(({ id }) => busy.includes(id));
  const { id: sick, region } = nodes[0]!;
  const { id: hopeless } = nodes.find((node) => node.region !== region)!;
  interventions.startFailure(sick, { failureMode: "outage", remedy: "reboot" });
  // It has its turn first: while an action is not verified there is no other.
  await waitUntil("it is rebooted", async () => {
    const acting = await prometheus.query('proxywarden_node_episode{state="acting"}');
    return acting.length > 0;
  });
  interventions.startFailure(hopeless, { failureMode: "outage", remedy: "operator" });

  const isOfAlerts = ({ expr }: DashboardQuery) => expr.startsWith("ALERTS{");
  let empty = allDashboardQueries.filter((query) => !isOfAlerts(query));
  const strange: string[] = [];
  await waitUntil(
    () => `these have data:\n${empty.map(({ where, expr }) => `${where}: ${expr}`).join("\n")}`,
    async () => {
      const answers = await Promise.all(empty.map((query) => ask(prometheus, query, sick)));
      for (const [index, { where, legend }] of empty.entries()) {
        const [first] = answers[index]!;
        const lacking = labelsIn(legend ?? "").filter((label) => first !== undefined && !(label in first.metric));
        strange.push(...lacking.map((label) => `${where}: no series has a label ${label}`));
      }
      empty = empty.filter((_, index) => answers[index]!.length === 0);
      return empty.length === 0;
    },
  );
  expect(strange).toEqual([]);
  await expectNodeChosenByName(prometheus, sick);

  const { groups } = await prometheus.get<{ groups: readonly { rules: readonly Rule[] }[] }>("rules");
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.filter(({ health, lastError }) => health !== "ok" || lastError !== undefined)).toEqual([]);
  expect(rules.filter(({ state = "inactive" }) => state === "firing").map(({ name }) => name)).toEqual([]);
  for (const { name } of rules.filter(({ state }) => state === undefined)) {
    await waitUntil(`${name} has data`, async () => (await prometheus.query(name)).length > 0);
  }
  const [left] = await prometheus.query("proxywarden_month_reset_timestamp_seconds - time()");
  expect(Number(left!.value[1])).toBeLessThan((31 * DAY_MS) / SECOND_MS);

  network.setFault({ kind: "status", status: 429, retryAfter: "60" }, "GET /v1/sessions?");
  const alert = await waitUntil("Alertmanager has the alert", async () =>
    (await alertmanager.alerts()).find(({ labels }) => labels.alertname === "ProxywardenRateLimited"),
  );
  expect(alert).toMatchObject({
    labels: { severity: "warning", category: "session_monitoring", job: "proxywarden" },
    annotations: { runbook_url: "https://proxywarden.example.net/docs/runbook.md#proxywardenratelimited" },
    receivers: [{ name: "team" }],
  });
  for (const query of allDashboardQueries.filter(isOfAlerts))
    expect(await ask(prometheus, query, sick), query.where).not.toEqual([]);
});

/** Grafana's own steps: the series of the variable's query, each as text, and the regular expression over it. */
async function expectNodeChosenByName(prometheus: Prometheus, node: string): Promise<void> {
  const { regex } = dashboards.get("node.json")!.templating.list!.find(({ name }) => name === "node")!;
  const { result } = await prometheus.get<{ result: readonly Series[] }>("query?query=proxynet_node_info");
  const { metric } = result.find((series) => series.metric.node_id === node)!;
  const { __name__: name, ...labels } = metric;
  const text = (of: object) =>
    `${name}{${Object.entries(of)
      .map(([label, value]) => `${label}="${value}"`)
      .join(",")}} 1 1`;
  const pattern = new RegExp(regex!.slice(1, -1));
  expect(pattern.exec(text(labels))?.groups).toEqual({ text: labels.name, value: node });
  const { name: _, ...nameless } = labels;
  expect(pattern.exec(text(nameless))?.groups).toEqual({ text: undefined, value: node });
}
