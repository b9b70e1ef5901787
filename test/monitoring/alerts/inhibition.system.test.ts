import { expect, test } from "vitest";
import { freePort } from "../../harness/servers/free-port.ts";
import { startAlertmanager } from "../../integration/prometheus/monitoring-servers.ts";
import { waitUntil } from "../../integration/wait-until.ts";
import { textOf } from "../repository-files.ts";

const rule = (alertname: string, instance?: string) => ({
  labels: { alertname, job: "proxywarden", ...(instance === undefined ? {} : { instance }) },
});
/** An alert that the daemon sends has no instance. */
const daemonAlert = (alertname: string) => ({ labels: { alertname, key: "storm/1" } });

test.each([
  {
    source: rule("ProxywardenDown", "a"),
    targets: [rule("ProxywardenPaused", "a"), rule("ProxynetRegionDark", "a")],
    others: [rule("ProxywardenPaused", "b"), rule("ProxywardenNoLeader"), daemonAlert("ProxywardenStorm")],
  },
  {
    source: rule("ProxywardenDown"),
    targets: [],
    others: [rule("ProxywardenNoLeader"), daemonAlert("ProxywardenStorm")],
  },
  {
    source: rule("ProxywardenBlind", "a"),
    targets: [rule("ProxywardenUntrusted", "a"), rule("ProxynetFleetOffline", "a")],
    others: [rule("ProxywardenApiKeyRefused", "a"), daemonAlert("ProxywardenUntrusted")],
  },
  {
    source: rule("ProxynetFleetOffline", "a"),
    targets: [rule("ProxynetNodesOffline", "a")],
    others: [rule("ProxynetNodesOffline", "b")],
  },
])(
  "$source.labels.alertname of the instance $source.labels.instance inhibits only alerts of that instance",
  async ({ source, targets, others }) => {
    const alertmanager = await startAlertmanager(await freePort(), textOf("config/prometheus/alertmanager.yml"));
    await alertmanager.post("alerts", [source, ...targets, ...others]);
    const expected = [
      ...targets.map(({ labels }) => ({ labels, state: "suppressed" })),
      ...[source, ...others].map(({ labels }) => ({ labels, state: "active" })),
    ];
    const states = await waitUntil("every alert has a state", async () => {
      const alerts = await alertmanager.alerts();
      const known = alerts.map(({ labels, status }) => ({ labels, state: status.state }));
      return known.length === expected.length && known.every(({ state }) => state !== "unprocessed") && known;
    });
    const byName = (one: object, other: object) => JSON.stringify(one).localeCompare(JSON.stringify(other));
    expect(states.toSorted(byName)).toEqual(expected.toSorted(byName));
  },
);
