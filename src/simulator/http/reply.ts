import { brotliCompressSync, gzipSync } from "node:zlib";
import type { FaultKind, ServiceOptions } from "../../config/schema/scenario.ts";

/** A request to the service. `path` includes the query; header names are in lower case. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
}

/**
 * A fault in the delivery of a reply:
 * - `hang`: nothing is sent.
 * - `reset`: the connection is reset before the reply, even if the request was executed.
 * - `truncate`: the connection breaks in the middle of the body.
 * - `slow_drip`: the body is sent at a low rate.
 * - `huge_body`: the body is padded with leading spaces.
 */
export type DeliveryFault = Extract<
  FaultKind,
  { readonly kind: "hang" | "reset" | "truncate" | "slow_drip" | "huge_body" }
>;

/** A reply from the service. Header names are in lower case. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  readonly deliveryFault?: DeliveryFault;
}

const utf8 = new TextEncoder();

/** Returns the body of a reply as bytes. */
export const replyBytes = (reply: Reply): Uint8Array =>
  typeof reply.body === "string" ? utf8.encode(reply.body) : reply.body;

/** Compresses a reply for a client that accepts these encodings. A reply with a delivery fault stays uncompressed. */
export function compressReply(
  compression: ServiceOptions["compression"],
  accepted: string | undefined,
  reply: Reply,
): Reply {
  const encoding = compression === "accepted" ? (acceptsGzip(accepted) ? "gzip" : "off") : compression;
  if (encoding === "off" || reply.body === "" || reply.deliveryFault !== undefined) return reply;
  const bytes = replyBytes(reply);
  const body = encoding === "gzip" ? gzipSync(bytes) : brotliCompressSync(bytes);
  return { ...reply, headers: { ...reply.headers, "content-encoding": encoding }, body };
}

const acceptsGzip = (accepted = ""): boolean =>
  accepted.split(",").some((coding) => coding.trim().toLowerCase() === "gzip");
