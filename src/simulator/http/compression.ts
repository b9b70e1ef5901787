import { brotliCompressSync, gunzipSync, gzipSync } from "node:zlib";
import type { ServiceOptions } from "../../model/scenario.ts";
import { type Reply, replyBytes } from "./reply.ts";

/** The reply as the service compresses it for a client that accepts these encodings. A mishap is done to plain bytes. */
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
  accepted.split(",").some((each) => each.trim().toLowerCase() === "gzip");

/** The reply as a client that takes gzip reads it. */
export function decompressReply(reply: Reply): Reply {
  const { "content-encoding": encoding, ...headers } = reply.headers;
  return encoding === "gzip" ? { ...reply, headers, body: gunzipSync(replyBytes(reply)) } : reply;
}
