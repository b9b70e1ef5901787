import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { isLasting, type Notice, type NoticeKind, type Receiver } from "../model/remediation/notification.ts";
import type { Clock } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { bodyText, jsonOf } from "../api-client/json-body.ts";
import { excerpt } from "../api-client/errors.ts";
import { createPeer, type Peer, type PeerAccess } from "../api-client/integration-client.ts";
import { isoTime, verdictOf } from "./delivery-result.ts";

/**
 * Whether Alertmanager has an alert that fires, is neither silenced nor inhibited, and that all matchers fit, each as
 * amtool writes it. No matcher fits every alert. The error says why that is not known.
 */
export async function alertsFire(
  peer: Peer,
  matchers: readonly string[],
  signal: AbortSignal,
): Promise<Result<boolean, string>> {
  const filters = matchers.map((matcher) => `&filter=${encodeURIComponent(matcher)}`).join("");
  const path = `/api/v2/alerts?active=true&silenced=false&inhibited=false${filters}`;
  const answer = await peer.exchange({ method: "GET", path }, signal);
  if (!answer.ok) return fail(`Alertmanager: ${answer.error}`);
  const { status, body } = answer.value;
  const text = bodyText(body);
  if (status !== 200) return fail(`Alertmanager answered ${status}: ${excerpt(text)}`);
  const alerts = jsonOf(body);
  return Array.isArray(alerts) ? ok(alerts.length > 0) : fail(`this is no answer of Alertmanager: ${excerpt(text)}`);
}

/** What a receiver that is an Alertmanager stands on. */
export interface AlertmanagerParts {
  readonly name: string;
  readonly access: PeerAccess;
  readonly clock: Clock;
  /** Sent as User-Agent. */
  readonly agent: string;
  /** Where people find more: becomes the alerts' generatorURL. */
  readonly generatorUrl?: string;
}

/** What lasts is told again this often, as Prometheus does. */
const REPEAT_MS: DurationMs = MINUTE_MS;
/** An alert that isn't told again is over after this: some repetitions may fail, and none comes once we are dead. */
const LASTS_MS: DurationMs = 5 * MINUTE_MS;
/** An alert about a moment shows for this long: the slowest group_interval in use must see it fire. */
const SHOWN_MS: DurationMs = HOUR_MS;

/** The label `alertname` of each kind of notice. */
export const ALERT_NAMES: Readonly<Record<NoticeKind, string>> = {
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

/** Makes notices alerts. The label `key` keeps apart what else has equal labels; what does not apply is no label. */
export function createAlertmanager(parts: AlertmanagerParts): Receiver & { close(): Promise<void> } {
  const { name, clock, agent, access, generatorUrl } = parts;
  const peer = createPeer({ access, clock, agent });
  return {
    name,
    repeatMs: REPEAT_MS,
    async send(notices, signal) {
      const now = clock.now();
      const body = JSON.stringify(notices.map((notice) => alertOf(notice, now, generatorUrl)));
      const answer = await peer.exchange({ method: "POST", path: "/api/v2/alerts", body }, signal);
      if (!answer.ok) return verdictOf(answer);
      return verdictOf(ok(answer.value.status), excerpt(bodyText(answer.value.body)));
    },
    close: () => peer.close(),
  };
}

function alertOf(notice: Notice, now: EpochMs, generatorUrl: string | undefined) {
  const labels = {
    alertname: ALERT_NAMES[notice.kind],
    severity: notice.severity,
    key: notice.key,
    policy: notice.policy,
    node_id: notice.node,
    region: notice.region,
    episode: notice.episode,
  };
  const endsAt = endOf(notice, now);
  return {
    labels: Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== null && value !== "")),
    annotations: { summary: notice.summary },
    // An alert that ends before it starts is refused, and our clock may have been set in between.
    startsAt: isoTime(Math.min(notice.startsAt, endsAt)),
    endsAt: isoTime(endsAt),
    ...(generatorUrl === undefined ? {} : { generatorURL: generatorUrl }),
  };
}

function endOf(notice: Notice, now: EpochMs): EpochMs {
  if (notice.endsAt !== null) return notice.endsAt;
  return isLasting(notice) ? now + LASTS_MS : notice.startsAt + SHOWN_MS;
}
