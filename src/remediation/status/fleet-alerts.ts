import type { Notification } from "../../model/remediation/notification.ts";
import type { EpochMs } from "../../model/time.ts";
import { INCIDENT_MS_MAX } from "../../policy/guards/correlated-failure.ts";
import type { RemediationContext } from "../context.ts";
import type { FleetHealth } from "../evaluation/fleet-health.ts";
import type { InventoryTrust } from "../evaluation/inventory-trust.ts";

type FleetAlert = Pick<Notification, "kind" | "key" | "summary" | "startsAt"> & { readonly region?: string };

/**
 * Returns a function that sends a notification about everything that holds the whole fleet or a region, when it begins and
 * when it ends. What still lasts after a restart is sent again: receivers recognize the key.
 */
export function createFleetAlerts(
  context: Pick<RemediationContext, "apiKey" | "log" | "notifier" | "remediationState">,
  fleetHealth: FleetHealth,
): (trust: InventoryTrust) => void {
  const { remediationState, notifier, log } = context;
  const sentAlerts = new Map<string, FleetAlert>();
  let untrustedSince: EpochMs | null = null;

  function* currentAlerts(trust: InventoryTrust): Generator<FleetAlert> {
    const storm = fleetHealth.storm();
    if (storm !== null) {
      const summary =
        "A storm: too many nodes are unhealthy at once; no node is touched until it is over and has cooled down";
      yield { kind: "storm", key: `storm/${storm.since}`, summary, startsAt: storm.since };
    }
    const { open } = fleetHealth.breaker();
    if (open !== null) {
      const summary = `The breaker is open: ${open.nodes} nodes fired; no node is touched until a person resets it`;
      yield { kind: "breaker", key: `breaker/${open.openedAt}`, summary, startsAt: open.openedAt };
    }
    for (const { place: domain, nodes, from, to } of fleetHealth.incidents()) {
      const latest = new Date(to + INCIDENT_MS_MAX).toISOString();
      const summary = `One incident: ${nodes.size} nodes of ${domain || "no place"} went bad together; no action is taken on them until they recover, at the latest until ${latest}`;
      yield { kind: "incident", key: `incident/${domain}`, summary, startsAt: from, region: domain };
    }
    const keyRejection = context.apiKey.rejection();
    if (keyRejection !== null) {
      const { message, since } = keyRejection;
      const summary = `The service refuses the API key for actions, and every action is on hold: ${message}`;
      yield { kind: "credentials", key: `credentials/${since}`, summary, startsAt: since };
    }
    if (untrustedSince !== null) {
      const why = trust.blockers.map(({ detail }) => detail).join("; ");
      const summary = `What is seen is not to be believed, and no node is touched: ${why}`;
      yield { kind: "untrusted", key: `untrusted/${untrustedSince}`, summary, startsAt: untrustedSince };
    }
  }

  function sendAlert({ region = undefined, ...alert }: FleetAlert, endsAt: EpochMs | null): void {
    const subject = { policy: null, node: null, episode: null, region: region ?? null } as const;
    notifier.notify({ ...subject, ...alert, severity: "critical", endsAt });
  }

  return (trust) => {
    const now = remediationState.now();
    untrustedSince = trust.isUntrusted ? (untrustedSince ?? now) : null;
    const alerts = new Map([...currentAlerts(trust)].map((alert) => [alert.key, alert]));
    for (const [key, alert] of alerts) {
      if (sentAlerts.has(key)) continue;
      sentAlerts.set(key, alert);
      log.error({ alert: alert.kind, region: alert.region }, alert.summary);
      sendAlert(alert, null);
    }
    for (const [key, alert] of sentAlerts) {
      if (alerts.has(key)) continue;
      sentAlerts.delete(key);
      log.info({ alert: alert.kind, region: alert.region }, "alert resolved");
      sendAlert(alert, now);
    }
  };
}
