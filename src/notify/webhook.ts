import { fail, ok } from "../base/result.ts";
import type { Notice, Receiver } from "../model/remediation/notification.ts";
import type { Clock, Secret } from "../model/ports.ts";
import { createPeer } from "../api-client/integration-client.ts";
import { isoTime, verdictOf } from "./delivery-result.ts";

/** What a webhook stands on. */
export interface WebhookParts {
  readonly name: string;
  /** Never told to anybody: whoever knows it may post there. */
  readonly url: Secret;
  readonly clock: Pick<Clock, "sleep">;
  /** Sent as User-Agent. */
  readonly agent: string;
}

/**
 * Posts notices to a webhook, as JSON. The status of all together is `firing` if that of any is; `resolved` are those that
 * tell an end. What is null does not apply; times are ISO 8601 in UTC. A field that is added later changes no version.
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
 *           "summary": "node_7 is unhealthy by the policy reboot-offline (ep-12)",
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
 * Any 2xx takes them. The same notice may come twice: where an answer was lost, it is sent again.
 */
export function createWebhook({ name, url, clock, agent }: WebhookParts): Receiver & { close(): Promise<void> } {
  const peer = createPeer({ access: { url }, clock, agent });
  return {
    name,
    async send(notices, signal) {
      const body = JSON.stringify(payloadOf(notices));
      const answer = await peer.exchange({ method: "POST", path: null, body }, signal);
      // What it says is not quoted: it may say its own URL.
      return verdictOf(answer.ok ? ok(answer.value.status) : fail(answer.error));
    },
    close: () => peer.close(),
  };
}

const payloadOf = (notices: readonly Notice[]) => ({
  version: "1",
  status: notices.some(({ endsAt }) => endsAt === null) ? "firing" : "resolved",
  notices: notices.map((notice) => ({
    status: notice.endsAt === null ? "firing" : "resolved",
    kind: notice.kind,
    key: notice.key,
    severity: notice.severity,
    summary: notice.summary,
    policy: notice.policy,
    node_id: notice.node,
    episode: notice.episode,
    region: notice.region,
    starts_at: isoTime(notice.startsAt),
    ends_at: notice.endsAt === null ? null : isoTime(notice.endsAt),
  })),
});
