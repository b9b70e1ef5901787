import { excerpt } from "../api-client/errors.ts";
import { createIntegrationClient, type IntegrationClientDeps } from "../api-client/integration-client.ts";
import { bodyText } from "../api-client/json-body.ts";
import type { Log, Secret } from "../model/ports.ts";
import type { DeliveryResult, Notification, Receiver } from "../model/remediation/notification.ts";
import { isoAt } from "../model/time.ts";

/** A receiver with connections of its own. */
export interface ClosableReceiver extends Receiver {
  close(): Promise<void>;
}

/** What distinguishes the receivers that are reached over HTTP. */
interface HttpReceiverOptions extends Pick<Receiver, "name" | "repeatMs"> {
  /** Appended to the path of the URL, or null if the URL is used as it is. */
  readonly path: string | null;
  /** Returns the body of a request, which is sent as JSON. */
  readonly payload: (notifications: readonly Notification[]) => unknown;
  /** Whether errors quote the response. They must not if it may contain the URL and the URL is a secret. */
  readonly quotesResponse: boolean;
}

/** 4xx statuses after which a retry may succeed. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([401, 403, 408, 425, 429]);

/** Creates a receiver that posts notifications as JSON. */
export function createHttpReceiver(
  { path, payload, quotesResponse, ...receiver }: HttpReceiverOptions,
  deps: IntegrationClientDeps,
): ClosableReceiver {
  const client = createIntegrationClient(deps);
  return {
    ...receiver,
    async send(notifications, signal) {
      const request = { method: "POST", path, body: JSON.stringify(payload(notifications)) } as const;
      const response = await client.request(request, signal);
      if (!response.ok) return { ok: false, error: response.error.message, isFinal: false };
      const { status, body } = response.value;
      return deliveryResultOf(status, quotesResponse ? excerpt(bodyText(body)) : "");
    },
    close: client.close,
  };
}

function deliveryResultOf(status: number, quote: string): DeliveryResult {
  if (status >= 200 && status < 300) return { ok: true };
  const isFinal = status >= 400 && status < 500 && !RETRYABLE_STATUSES.has(status);
  return { ok: false, error: `it answered ${status}${quote === "" ? "" : `: ${quote}`}`, isFinal };
}

/** Dependencies of {@link createWebhook}. The URL is never logged or quoted, because it may contain a token. */
interface WebhookDeps extends Omit<IntegrationClientDeps, "access"> {
  readonly name: string;
  readonly url: Secret;
}

/**
 * Creates a receiver that posts notifications to a webhook, as JSON. The overall status is `firing` if any notification
 * fires. A field that does not apply is null; times are ISO 8601 in UTC. Adding a field does not change the version.
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
 *           "summary": "fra-0007 (node_7) is unhealthy under the policy reboot-offline (ep-12)",
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
export const createWebhook = ({ name, url, ...deps }: WebhookDeps): ClosableReceiver =>
  createHttpReceiver(
    { name, path: null, payload: webhookPayload, quotesResponse: false },
    { access: { url }, ...deps },
  );

const webhookPayload = (notifications: readonly Notification[]) => ({
  version: "1",
  status: notifications.some(({ endsAt }) => endsAt === null) ? "firing" : "resolved",
  notices: notifications.map(({ node, startsAt, endsAt, ...notification }) => ({
    status: endsAt === null ? "firing" : "resolved",
    ...notification,
    node_id: node,
    starts_at: isoAt(startsAt),
    ends_at: endsAt === null ? null : isoAt(endsAt),
  })),
});

const LOG_METHODS = { info: "info", warning: "warn", critical: "error" } as const;

/**
 * Creates a receiver that writes each notification to the log, with `critical` as an error. It needs no other server
 * and never fails.
 */
export const createLogReceiver = (name: string, log: Log): ClosableReceiver => ({
  name,
  async send(notifications) {
    for (const { kind, key, severity, summary, policy, node, region, endsAt } of notifications) {
      const end = endsAt === null ? {} : { ends_at: isoAt(endsAt) };
      const method = endsAt === null ? LOG_METHODS[severity] : "info";
      log[method]({ receiver: name, kind, key, summary, policy, node, region, ...end }, "notification");
    }
    return { ok: true };
  },
  async close() {},
});
