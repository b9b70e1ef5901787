import type { Log } from "../model/ports.ts";
import type { Notification } from "../model/remediation/notification.ts";
import { formatIsoTime, type HttpReceiver } from "./http-receiver.ts";

const LOG_METHODS = { info: "info", warning: "warn", critical: "error" } as const;

/**
 * Creates a receiver that writes each notification to the log, with `critical` as an error. It needs no other server
 * and never fails.
 */
export const createLogReceiver = (name: string, log: Log): HttpReceiver => ({
  name,
  async send(notifications) {
    for (const notification of notifications) writeNotification(name, notification, log);
    return { ok: true };
  },
  close: () => Promise.resolve(),
});

function writeNotification(receiver: string, notification: Notification, log: Log): void {
  const { kind, key, severity, summary, policy, node, region, endsAt } = notification;
  const end = endsAt === null ? {} : { ends_at: formatIsoTime(endsAt) };
  const method = endsAt === null ? LOG_METHODS[severity] : "info";
  log[method]({ receiver, kind, key, summary, policy, node, region, ...end }, "notification");
}
