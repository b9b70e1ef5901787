import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { freePort } from "../../harness/servers/free-port.ts";
import { type Alertmanager, startAlertmanager, startPrometheus } from "../prometheus/monitoring-servers.ts";
import { waitUntil } from "../wait-until.ts";
import { type RunningDaemon, rebootOffline, startDaemonFor, startHealingSetup } from "./healing-daemon.ts";

const OUTAGE = { failureMode: "outage", remedy: "reboot" } as const;

const QUERY = 'sum(proxynet_nodes{status="quarantined"}) > 0';
const MATCHER = 'alertname="UpstreamDown"';
const BY_QUERY = `the query ${QUERY}: it returns a result`;
const BY_ALERT = `alerts with ${MATCHER}: one is firing`;

/** Returns the blockers of the next step of a node's episode. */
async function externalBlockersOf(daemon: RunningDaemon, node: string): Promise<readonly string[]> {
  const [policy] = (await daemon.explain(node)).policies;
  if (policy?.episode == null) return [];
  return policy.blockers.filter(({ reason }) => reason === "blocked_by").map(({ detail }) => detail);
}

async function untilHeldBy(daemon: RunningDaemon, node: string, ...details: readonly string[]): Promise<void> {
  let last: readonly string[] = [];
  await waitUntil(
    () => `it is held by ${details.join(" and ")}; it is by ${last.join(" and ")}`,
    async () => {
      last = await externalBlockersOf(daemon, node);
      return JSON.stringify(last) === JSON.stringify(details);
    },
  );
}

/** In real time, because Alertmanager compares the times of alerts with its own clock. */
async function expectAlertWhileIll(alertmanager: Alertmanager): Promise<void> {
  const setup = await startHealingSetup({ speed: 1, rebootMs: SECOND_MS / 2 });
  const [node] = setup.nodes;
  const config = setup.writeConfig([rebootOffline()], {
    limits: { node_management: { requests: 10_000, burst: 20_000, window: "1m" } },
    collect: { nodes: { every: "1s" }, details: { max_age: "1d" }, sessions: { every: "1h" }, stats: { every: "1h" } },
    safety: { mode: "enforce", trust: { warmup_walks: 1 } },
    alertmanager: { url: alertmanager.url },
    receivers: [{ name: "alerts", alertmanager: true }],
  });
  setup.interventions.startFailure(node!, OUTAGE);
  const daemon = await startDaemonFor(setup, config);
  const sentAlerts = async () =>
    (await alertmanager.alerts()).filter(({ labels }) => labels.alertname === "ProxywardenEpisode");
  const [alert] = await waitUntil("the alert fires", async () => {
    const alerts = await sentAlerts();
    return alerts.length > 0 && alerts;
  });
  expect(alert).toMatchObject({
    labels: { policy: "reboot-offline", node_id: node, severity: "warning", episode: "ep-1" },
    annotations: {
      summary: expect.stringMatching(`^\\S+ \\(${node}\\) is unhealthy under the policy reboot-offline \\(ep-1\\)$`),
    },
    status: { state: "active" },
  });
  await waitUntil("the alert is resolved", async () => (await sentAlerts()).length === 0);
  expect(await daemon.episode(node!)).toMatchObject({ state: "healed" });
  expect((await daemon.scrape()).sum("proxywarden_notifications_total", { outcome: "sent" })).toBe(2);
}

test("a node is held while a Prometheus query has a result, an alert is firing, or a query fails; an episode is an alert itself", async () => {
  const [setup, ...ports] = await Promise.all([startHealingSetup(), freePort(), freePort()]);
  const [unhealthy, other] = setup.nodes;
  const { interventions, serviceProxy } = setup;
  const policy = rebootOffline({ blocked_by: [{ query: QUERY }, { alerts: [MATCHER] }] });
  const config = setup.writeConfig([policy], {
    prometheus: { url: `http://127.0.0.1:${ports[0]}` },
    alertmanager: { url: `http://127.0.0.1:${ports[1]}` },
  });
  interventions.quarantine(other!, setup.network.clock.now() + DAY_MS);
  const daemon = await startDaemonFor(setup, config);
  const prometheus = startPrometheus(new URL(daemon.app.url()).host, ports[0]);
  interventions.startFailure(unhealthy!, OUTAGE);
  await waitUntil("the query to Alertmanager fails", async () =>
    /^alerts with .*: the query failed: Alertmanager: .*ECONNREFUSED/.test(
      (await externalBlockersOf(daemon, unhealthy!)).at(-1) ?? "",
    ),
  );

  const alertmanager = await startAlertmanager(ports[1]);
  const now = systemClock.now();
  const alertOf = (instance: string, endsAt: number) => ({
    labels: { alertname: "UpstreamDown", instance },
    endsAt: new Date(endsAt).toISOString(),
  });
  await alertmanager.post("alerts", [alertOf("one", now + HOUR_MS), alertOf("two", now + HOUR_MS)]);
  await Promise.all([expectAlertWhileIll(alertmanager), prometheus]);
  await untilHeldBy(daemon, unhealthy!, BY_QUERY, BY_ALERT);

  const silence = {
    matchers: [{ name: "instance", value: "one", isRegex: false }],
    startsAt: new Date(now),
    endsAt: new Date(now + HOUR_MS),
    createdBy: "a test",
    comment: "known",
  };
  await alertmanager.post("silences", silence);
  await alertmanager.post("alerts", [alertOf("two", now - SECOND_MS)]);
  await untilHeldBy(daemon, unhealthy!, BY_QUERY);
  expect(serviceProxy.postRequests).toEqual([]);
  interventions.liftQuarantine(other!);
  await waitUntil("it is healed", async () => (await daemon.episode(unhealthy!))?.state === "healed");
  expect(serviceProxy.postRequests).toHaveLength(1);
});
