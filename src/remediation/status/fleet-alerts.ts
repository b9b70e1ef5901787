import { formatDuration } from "../../base/duration.ts";
import type { TrustAssessment } from "../../inventory/trust.ts";
import type { Notification } from "../../model/remediation/notification.ts";
import { type EpochMs, formatTime } from "../../model/time.ts";
import { INCIDENT_MS_MAX } from "../../policy/guards/correlated-failure.ts";
import { breakerCause, stormCause } from "../../policy/guards/storm-and-breaker.ts";
import type { EpisodeContext, ServiceContext } from "../context.ts";
import type { FleetHealth } from "../evaluation/fleet-health.ts";
import { REJECTION_HOLD_MS } from "../execution/api-key-status.ts";

type FleetAlert = Pick<Notification, "kind" | "key" | "summary" | "startsAt"> & { readonly region?: string | null };

/** Key of the fact that holds the alerts that were sent and not resolved. */
const UNRESOLVED_FACT = "remediation.unresolved_alerts";

const byKey = (alerts: Iterable<FleetAlert>): ReadonlyMap<string, FleetAlert> =>
  new Map([...alerts].map((alert) => [alert.key, alert]));

/**
 * Returns a function that sends a notification when something begins to hold the whole fleet or a region, and when it
 * ends. It continues with the active notifications of the notifier, which were sent before a reload. After a restart,
 * notifications about what still lasts are sent again with the same key, by which receivers recognize them, and what has
 * ended is resolved.
 */
export function createFleetAlerts(
  context: EpisodeContext & Pick<ServiceContext, "apiKey">,
  fleetHealth: FleetHealth,
): (trust: TrustAssessment) => void {
  const { apiKey, remediationState, notifier, log } = context;
  const { facts } = remediationState;
  /** Keys of the alerts that this process sent. */
  const sentKeys = new Set(notifier.activeNotifications().map(({ key }) => key));
  let unresolved = byKey(remediationState.records.jsonFact<FleetAlert[]>(UNRESOLVED_FACT) ?? []);
  let untrustedSince: EpochMs | null =
    [...unresolved.values()].find(({ kind }) => kind === "untrusted")?.startsAt ?? null;

  function sendAlert({ region, ...alert }: FleetAlert, endsAt: EpochMs | null): void {
    const subject = { policy: null, node: null, episode: null, region: region ?? null } as const;
    notifier.notify({ ...subject, ...alert, severity: "critical", endsAt });
  }

  return (trust) => {
    const now = remediationState.now();
    if (trust.isUntrusted) untrustedSince ??= now;
    // Until the first walks after a restart, nothing shows that the data is trusted again.
    else if (!trust.blockers.some(({ reason }) => reason === "warming_up")) untrustedSince = null;
    const alerts = byKey(currentAlerts(fleetHealth.state(false), apiKey.rejection(), trust, untrustedSince));
    for (const [key, alert] of alerts) {
      if (sentKeys.has(key)) continue;
      sentKeys.add(key);
      log.error({ alert: alert.kind, region: alert.region, summary: alert.summary }, "alert firing");
      sendAlert(alert, null);
    }
    for (const [key, alert] of unresolved) {
      if (alerts.has(key)) continue;
      sentKeys.delete(key);
      log.info({ alert: alert.kind, region: alert.region }, "alert resolved");
      sendAlert(alert, now);
    }
    const isChanged = alerts.size !== unresolved.size || [...alerts.keys()].some((key) => !unresolved.has(key));
    if (!isChanged) return;
    // A resolved alert keeps the summary with which it began.
    unresolved = byKey([...alerts.values()].map((alert) => unresolved.get(alert.key) ?? alert));
    facts.write(UNRESOLVED_FACT, JSON.stringify([...unresolved.values()]));
  };
}

/** Yields what holds the whole fleet or a region now. `untrustedSince` is null if fleet data is trusted. */
function* currentAlerts(
  { storm, breaker, incidents }: ReturnType<FleetHealth["state"]>,
  keyRejection: ReturnType<ServiceContext["apiKey"]["rejection"]>,
  trust: TrustAssessment,
  untrustedSince: EpochMs | null,
): Generator<FleetAlert> {
  if (storm !== null) {
    const summary = `Storm: ${stormCause(storm)}; no action is taken until it has ended and its cooldown has passed`;
    yield { kind: "storm", key: `storm/${storm.since}`, summary, startsAt: storm.since };
  }
  const { open } = breaker;
  if (open !== null) {
    const summary = `The circuit breaker is open, because ${breakerCause(open)}; no action is taken until an operator runs reset-breaker`;
    yield { kind: "breaker", key: `breaker/${open.openedAt}`, summary, startsAt: open.openedAt };
  }
  for (const { domain, nodes, from, to } of incidents) {
    const latest = formatTime(to + INCIDENT_MS_MAX);
    const summary = `Correlated failure: ${nodes.size} nodes of ${domain || "an unknown location"} failed together; no action is taken on them until they recover, or until ${latest}`;
    yield { kind: "incident", key: `incident/${domain}`, summary, startsAt: from, region: domain };
  }
  if (keyRejection !== null) {
    const { message, since } = keyRejection;
    const summary = `The service rejects the API key for actions, and only one action is tried every ${formatDuration(REJECTION_HOLD_MS)}: ${message}`;
    yield { kind: "credentials", key: `credentials/${since}`, summary, startsAt: since };
  }
  if (untrustedSince !== null) {
    const reasons = trust.blockers.map(({ detail }) => detail).join("; ");
    const summary = `Fleet data is not trusted, and no action is taken: ${reasons}`;
    yield { kind: "untrusted", key: `untrusted/${untrustedSince}`, summary, startsAt: untrustedSince };
  }
}
