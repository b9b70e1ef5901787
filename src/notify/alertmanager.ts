import { excerpt } from "../api-client/errors.ts";
import {
  createIntegrationClient,
  type IntegrationAccess,
  type IntegrationClient,
} from "../api-client/integration-client.ts";
import { bodyText, parseJson } from "../api-client/json-body.ts";
import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { Clock } from "../model/ports.ts";
import {
  isActive,
  type Notification,
  type NotificationKind,
  type Receiver,
} from "../model/remediation/notification.ts";
import type { EpochMs } from "../model/time.ts";
import { deliveryResultOf, formatIsoTime } from "./delivery-result.ts";

/**
 * Whether Alertmanager has an alert that fires, is neither silenced nor inhibited, and that all matchers fit, each as
 * amtool writes it. No matcher fits every alert. The error says why that is not known.
 */
export async function hasFiringAlerts(
  peer: IntegrationClient,
  matchers: readonly string[],
  signal: AbortSignal,
): Promise<Result<boolean, string>> {
  const filters = matchers.map((matcher) => `&filter=${encodeURIComponent(matcher)}`).join("");
  const path = `/api/v2/alerts?active=true&silenced=false&inhibited=false${filters}`;
  const answer = await peer.request({ method: "GET", path }, signal);
  if (!answer.ok) return fail(`Alertmanager: ${answer.error}`);
  const { status, body } = answer.value;
  const text = bodyText(body);
  if (status !== 200) return fail(`Alertmanager answered ${status}: ${excerpt(text)}`);
  const alerts = parseJson(body);
  return Array.isArray(alerts) ? ok(alerts.length > 0) : fail(`this is no answer of Alertmanager: ${excerpt(text)}`);
}

/** Dependencies of an Alertmanager receiver. */
export interface AlertmanagerDeps {
  readonly name: string;
  readonly access: IntegrationAccess;
  readonly clock: Clock;
  /** Sent as User-Agent. */
  readonly agent: string;
  /** Becomes the generatorURL of the alerts. */
  readonly generatorUrl?: string;
}

/** Active alerts are repeated this often, as Prometheus does. */
const REPEAT_MS: DurationMs = MINUTE_MS;
/** An alert expires after this without repetition: some repetitions may fail, and none comes after the daemon stopped. */
const ALERT_LIFETIME_MS: DurationMs = 5 * MINUTE_MS;
/** How long an alert about a single event fires: longer than any common group_interval. */
const EVENT_ALERT_MS: DurationMs = HOUR_MS;

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

/** Creates a receiver that sends alerts. The label `key` distinguishes alerts that are otherwise equal; empty labels are left out. */
export function createAlertmanager(parts: AlertmanagerDeps): Receiver & { close(): Promise<void> } {
  const { name, clock, agent, access, generatorUrl } = parts;
  const peer = createIntegrationClient({ access, clock, agent });
  return {
    name,
    repeatMs: REPEAT_MS,
    async send(notifications, signal) {
      const now = clock.now();
      const body = JSON.stringify(notifications.map((notification) => toAlert(notification, now, generatorUrl)));
      const answer = await peer.request({ method: "POST", path: "/api/v2/alerts", body }, signal);
      if (!answer.ok) return deliveryResultOf(answer);
      return deliveryResultOf(ok(answer.value.status), excerpt(bodyText(answer.value.body)));
    },
    close: () => peer.close(),
  };
}

function toAlert(notification: Notification, now: EpochMs, generatorUrl: string | undefined) {
  const labels = {
    alertname: ALERT_NAMES[notification.kind],
    severity: notification.severity,
    key: notification.key,
    policy: notification.policy,
    node_id: notification.node,
    region: notification.region,
    episode: notification.episode,
  };
  const endsAt = alertEndsAt(notification, now);
  return {
    labels: Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== null && value !== "")),
    annotations: { summary: notification.summary },
    // Alertmanager rejects an alert that ends before it starts, and our clock may have been set back.
    startsAt: formatIsoTime(Math.min(notification.startsAt, endsAt)),
    endsAt: formatIsoTime(endsAt),
    ...(generatorUrl === undefined ? {} : { generatorURL: generatorUrl }),
  };
}

function alertEndsAt(notification: Notification, now: EpochMs): EpochMs {
  if (notification.endsAt !== null) return notification.endsAt;
  return isActive(notification) ? now + ALERT_LIFETIME_MS : notification.startsAt + EVENT_ALERT_MS;
}
