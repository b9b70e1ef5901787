import type { DurationMs } from "../../base/duration.ts";

/** A request as it reaches the service. `path` carries the query; header names are lower case. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
}

/**
 * What the shell does to the bytes of a reply. `hang`: nothing is ever sent; `reset`: the connection breaks before a
 * byte of the reply (of a request that was carried out, too: the reply is lost); `truncate`: it breaks half-way through
 * the body; `slow_drip`: the body comes at that pace; `huge_body`: the body is led by blanks up to that many bytes.
 */
export type DeliveryFault =
  | { readonly kind: "hang" }
  | { readonly kind: "reset" }
  | { readonly kind: "truncate" }
  | { readonly kind: "slow_drip"; readonly bytesPerSecond: number }
  | { readonly kind: "huge_body"; readonly bytes: number };

/** What the service answers. Header names are lower case. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  readonly deliveryFault?: DeliveryFault;
}

/** The bytes of a reply's body. */
export const replyBytes = (reply: Reply): Uint8Array =>
  typeof reply.body === "string" ? new TextEncoder().encode(reply.body) : reply.body;

/** How long `bytes` take at a drip's pace. */
export const dripMs = (bytes: number, bytesPerSecond: number): DurationMs =>
  Math.ceil((bytes / bytesPerSecond) * 1_000);
