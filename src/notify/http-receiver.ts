import { excerpt } from "../api-client/errors.ts";
import { createIntegrationClient, type IntegrationClientDeps } from "../api-client/integration-client.ts";
import { bodyText } from "../api-client/json-body.ts";
import type { DeliveryResult, Notification, Receiver } from "../model/remediation/notification.ts";
import type { EpochMs } from "../model/time.ts";

/** A receiver with connections of its own. */
export interface HttpReceiver extends Receiver {
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
): HttpReceiver {
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
    close: () => client.close(),
  };
}

function deliveryResultOf(status: number, quote: string): DeliveryResult {
  if (status >= 200 && status < 300) return { ok: true };
  const isFinal = status >= 400 && status < 500 && !RETRYABLE_STATUSES.has(status);
  return { ok: false, error: `it answered ${status}${quote === "" ? "" : `: ${quote}`}`, isFinal };
}

/** Formats a time as ISO 8601 in UTC. */
export const formatIsoTime = (at: EpochMs): string => new Date(at).toISOString();
