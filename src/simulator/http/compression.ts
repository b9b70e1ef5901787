import { brotliCompressSync, gunzipSync, gzipSync } from "node:zlib";
import type { ServiceOptions } from "../../model/scenario.ts";
import { type Reply, replyBytes } from "./reply.ts";

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
  accepted.split(",").some((each) => each.trim().toLowerCase() === "gzip");

/** Decompresses a reply, as a client that accepts gzip does. */
export function decompressReply(reply: Reply): Reply {
  const { "content-encoding": encoding, ...headers } = reply.headers;
  return encoding === "gzip" ? { ...reply, headers, body: gunzipSync(replyBytes(reply)) } : reply;
}
