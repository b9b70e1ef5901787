import type { FastifyReply, FastifyRequest } from "fastify";

const ERROR_CODES: Readonly<Record<number, string>> = {
  400: "bad_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  405: "method_not_allowed",
  409: "conflict",
  413: "body_too_large",
  429: "too_many_attempts",
  500: "internal",
  503: "unavailable",
};

/** What is said of an address that is no route's. */
export const NO_SUCH_PAGE = "not found; see / for the available routes";

/** Answers with a line of text. */
export const sendText = (reply: FastifyReply, status: number, line: string): FastifyReply =>
  reply.code(status).type("text/plain; charset=utf-8").send(`${line}\n`);

/** Answers with an error: as JSON below /api, as a line of text elsewhere. */
export function sendError(request: FastifyRequest, reply: FastifyReply, status: number, message: string): FastifyReply {
  if (!request.url.startsWith("/api/")) return sendText(reply, status, message);
  return reply.code(status).send({ error: ERROR_CODES[status] ?? "error", message });
}
