import { excerpt } from "../api-client/errors.ts";
import type { IntegrationClient, IntegrationClientDeps } from "../api-client/integration-client.ts";
import { bodyText, parseJson } from "../api-client/json-body.ts";
import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { Clock } from "../model/ports.ts";
import { IS_RESOLVABLE, type Notification, type NotificationKind } from "../model/remediation/notification.ts";
import { type EpochMs, isoAt } from "../model/time.ts";
import { type ClosableReceiver, createHttpReceiver } from "./receivers.ts";
import { EVENT_ALERT_MS } from "./retry-queue.ts";

/**
 * Returns whether Alertmanager has a firing alert that is neither silenced nor inhibited and that all matchers match.
 * Matchers use amtool's syntax; without matchers, every alert matches. Fails if Alertmanager does not answer.
 */
export async function hasFiringAlerts(
  client: IntegrationClient,
  matchers: readonly string[],
  signal: AbortSignal,
): Promise<Result<boolean, string>> {
  const filters = matchers.map((matcher) => `&filter=${encodeURIComponent(matcher)}`).join("");
  const path = `/api/v2/alerts?active=true&silenced=false&inhibited=false${filters}`;
  const response = await client.request({ method: "GET", path }, signal);
  if (!response.ok) return fail(`Alertmanager: ${response.error.message}`);
  const { status, body } = response.value;
  const text = bodyText(body);
  if (status !== 200) return fail(`Alertmanager answered ${status}: ${excerpt(text)}`);
  const alerts = parseJson(body);
  return Array.isArray(alerts)
    ? ok(alerts.length > 0)
    : fail(`this is not a response from Alertmanager: ${excerpt(text)}`);
}

/** Alerts are repeated this often, as in Prometheus. */
const REPEAT_MS: DurationMs = MINUTE_MS;
/**
 * An alert expires this long after its last repetition. That leaves time for some repetitions to fail, and ends the
 * alerts of a daemon that has stopped.
 */
const ALERT_LIFETIME_MS: DurationMs = 5 * MINUTE_MS;

/** The label `alertname` of each kind of notification. */
export const ALERT_NAMES: Readonly<Record<NotificationKind, string>> = {
  episode: "ProxywardenEpisode",
  step: "ProxywardenNotifyStep",
  given_up: "ProxywardenNodeGivenUp",
  lost: "ProxywardenNodeLost",
  overdue: "ProxywardenQuarantineOverdue",
  incident: "ProxywardenIncident",
  storm: "ProxywardenStorm",
  breaker: "ProxywardenBreakerOpen",
  untrusted: "ProxywardenUntrusted",
  credentials: "ProxywardenApiKeyRefused",
  efficacy: "ProxywardenPolicyIneffective",
  approval: "ProxywardenApprovalWanted",
};

/** The section of docs/runbook.md that has a row for each of these alerts. */
const RUNBOOK_SECTION = "#alerts-that-the-daemon-sends";

interface AlertmanagerDeps extends IntegrationClientDeps {
  readonly name: string;
  readonly clock: Clock;
  /** Address of the runbook, or undefined if it is unknown. */
  readonly runbook: string | undefined;
}

/**
 * Creates a receiver that sends alerts to Alertmanager. The label `key` distinguishes alerts that are otherwise equal;
 * empty labels are left out.
 */
export const createAlertmanager = ({ name, runbook, ...deps }: AlertmanagerDeps): ClosableReceiver =>
  createHttpReceiver(
    {
      name,
      repeatMs: REPEAT_MS,
      path: "/api/v2/alerts",
      payload: (notifications) => notifications.map((notification) => toAlert(notification, deps.clock.now(), runbook)),
      quotesResponse: true,
    },
    deps,
  );

function toAlert(notification: Notification, now: EpochMs, runbook: string | undefined) {
  const { kind, severity, key, policy, node, region, episode } = notification;
  const labels = { alertname: ALERT_NAMES[kind], severity, key, policy, node_id: node, region, episode };
  const endsAt = alertEndsAt(notification, now);
  return {
    labels: Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== null && value !== "")),
    annotations: {
      summary: notification.summary,
      ...(runbook === undefined ? {} : { runbook_url: `${runbook}${RUNBOOK_SECTION}` }),
    },
    // Alertmanager rejects an alert that ends before it starts, and our clock may have been set back.
    startsAt: isoAt(Math.min(notification.startsAt, now, endsAt)),
    endsAt: isoAt(endsAt),
  };
}

/**
 * Returns when an alert ends, by the wall clock. The times of a notification are by the journal's clock, which may
 * differ from it because it follows the service's clock. With these times, a new alert could already be over, and the
 * alert of a condition that has ended could continue.
 */
function alertEndsAt(notification: Notification, now: EpochMs): EpochMs {
  const { kind, endsAt } = notification;
  if (IS_RESOLVABLE[kind]) return endsAt === null ? now + ALERT_LIFETIME_MS : Math.min(endsAt, now);
  return endsAt ?? now + EVENT_ALERT_MS;
}
