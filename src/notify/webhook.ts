import type { Clock, Secret } from "../model/ports.ts";
import type { Notification } from "../model/remediation/notification.ts";
import { createHttpReceiver, formatIsoTime, type HttpReceiver } from "./http-receiver.ts";

interface WebhookDeps {
  readonly name: string;
  /** The URL. It is never logged or quoted, because it may contain a token. */
  readonly url: Secret;
  readonly clock: Pick<Clock, "sleep">;
  /** Sent as User-Agent. */
  readonly agent: string;
}

/**
 * Posts notifications to a webhook, as JSON. The overall status is `firing` if any notification fires. A field that
 * does not apply is null; times are ISO 8601 in UTC. Adding a field does not change the version.
 *
 *     {
 *       "version": "1",
 *       "status": "firing",
 *       "notices": [
 *         {
 *           "status": "firing",
 *           "kind": "episode",
 *           "key": "episode/ep-12",
 *           "severity": "warning",
 *           "summary": "node_7 is unhealthy under the policy reboot-offline (ep-12)",
 *           "policy": "reboot-offline",
 *           "node_id": "node_7",
 *           "episode": "ep-12",
 *           "region": "eu-west",
 *           "starts_at": "2026-03-01T00:00:00.000Z",
 *           "ends_at": null
 *         }
 *       ]
 *     }
 *
 * Any 2xx response means that they were accepted. A notification may arrive twice, because it is sent again if the
 * response was lost.
 */
export const createWebhook = ({ name, url, ...deps }: WebhookDeps): HttpReceiver =>
  createHttpReceiver(
    { name, path: null, payload: webhookPayload, quotesResponse: false },
    { access: { url }, ...deps },
  );

const webhookPayload = (notifications: readonly Notification[]) => ({
  version: "1",
  status: notifications.some(({ endsAt }) => endsAt === null) ? "firing" : "resolved",
  notices: notifications.map((notification) => ({
    status: notification.endsAt === null ? "firing" : "resolved",
    kind: notification.kind,
    key: notification.key,
    severity: notification.severity,
    summary: notification.summary,
    policy: notification.policy,
    node_id: notification.node,
    episode: notification.episode,
    region: notification.region,
    starts_at: formatIsoTime(notification.startsAt),
    ends_at: notification.endsAt === null ? null : formatIsoTime(notification.endsAt),
  })),
});
