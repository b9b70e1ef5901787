import { type ServerResponse, STATUS_CODES } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { WebRefusal } from "../../model/label-values.ts";

/** Headers of every response. The status page replaces the first two. */
const COMMON_HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  // For browsers without frame-ancestors.
  "x-frame-options": "DENY",
};

/** Sets the common and the configured headers, on the raw response because scrapes bypass Fastify. */
export function setHeaders(response: ServerResponse, configured: Readonly<Record<string, string>>): void {
  response.setHeaders(new Map(Object.entries({ ...COMMON_HEADERS, ...configured })));
}

/** Returns a whole response as text, for connections on which no request could be parsed. */
export function rawResponse(status: number, line: string): string {
  const body = `${line}\n`;
  const common = Object.entries(COMMON_HEADERS).map(([name, value]) => `${name}: ${value}`);
  const own = ["connection: close", "content-type: text/plain; charset=utf-8", `content-length: ${body.length}`];
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...common, ...own, "", body].join("\r\n");
}

const ERROR_CODES: Readonly<Record<number, string>> = {
  400: "bad_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  405: "method_not_allowed",
  409: "conflict",
  413: "body_too_large",
  414: "path_too_long",
  // Also the code for too many requests.
  429: "too_many_attempts",
  500: "internal",
  503: "unavailable",
};

/** Message of a 404 for a path without a route. */
export const NO_SUCH_PAGE = "there is no such route; docs/http.md lists all routes";

/** Answers with a line of text. */
export const sendText = (reply: FastifyReply, status: number, line: string): FastifyReply =>
  reply.code(status).type("text/plain; charset=utf-8").send(`${line}\n`);

/** The target of a request below /api, which may be a whole URL (RFC 9112, section 3.2.2). */
const API_TARGET = /^(?:https?:\/\/[^/]+)?\/api\//i;

/** Answers with an error, as JSON below /api and as a line of text elsewhere. */
export function sendError(request: FastifyRequest, reply: FastifyReply, status: number, message: string): FastifyReply {
  if (!API_TARGET.test(request.url)) return sendText(reply, status, message);
  return reply.code(status).send({ error: ERROR_CODES[status] ?? "error", message });
}

/** Why a request is refused, and how it is answered. */
export interface Refusal {
  readonly reason: WebRefusal;
  readonly status: 401 | 403 | 429 | 503;
  readonly message: string;
  /** Value of WWW-Authenticate. */
  readonly challenge?: string;
  readonly retryAfterMs?: DurationMs;
  /** Whether to close the connection, so that the rate limit of new connections slows down the client. */
  readonly closesConnection?: true;
}

/** Counts and answers a refused request. Returns false. */
export function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  refusal: Refusal,
  countRefusal: (reason: WebRefusal) => void,
): false {
  countRefusal(refusal.reason);
  const { status, message, challenge, retryAfterMs = 0, closesConnection = false } = refusal;
  if (retryAfterMs > 0) reply.header("retry-after", Math.ceil(retryAfterMs / SECOND_MS));
  if (challenge !== undefined) reply.header("www-authenticate", challenge);
  if (closesConnection) reply.header("connection", "close");
  sendError(request, reply, status, message);
  return false;
}
