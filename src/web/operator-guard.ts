import type { FastifyReply, FastifyRequest } from "fastify";
import { SECOND_MS } from "../base/duration.ts";
import type { Secret } from "../model/ports.ts";
import { sendError } from "./answer.ts";
import type { RouteParts } from "./route.ts";

/**
 * Whether a request that changes something may go on; if not, it is answered. A web page of another origin is refused
 * with 403, a missing or wrong token with 401, too many wrong ones with 429.
 */
export type OperatorGuard = (request: FastifyRequest, reply: FastifyReply) => boolean;

/**
 * Guards the routes that change something. `adminToken` is called for each request. Where it is null, a request needs no
 * token, but then no web page may send it: a page can be made to look as if it came from this server (DNS rebinding), but
 * a browser always says that a page sent the request.
 */
export function createOperatorGuard(
  adminToken: () => Secret | null,
  { log, gate, refused }: RouteParts,
): OperatorGuard {
  return (request, reply) => {
    const token = adminToken();
    const foreign = originProblem(request, token !== null);
    if (foreign !== null) {
      refused("origin");
      sendError(request, reply, 403, foreign);
      return false;
    }
    if (token === null) return true;
    const admission = gate.judge(request.headers.authorization, token);
    switch (admission.kind) {
      case "granted":
        return true;
      case "throttled":
        refused("attempts");
        reply.header("retry-after", Math.ceil(admission.retryAfterMs / SECOND_MS));
        sendError(request, reply, 429, "too many wrong admin tokens; the right one is still taken");
        return false;
      case "wrong":
        refused("credentials");
        log.warn({ path: request.routeOptions.url, from: request.ip }, "Wrong admin token given.");
        reply.header("www-authenticate", 'Bearer realm="proxywarden", error="invalid_token"');
        sendError(request, reply, 401, "that is not the admin token");
        return false;
      case "missing":
        refused("credentials");
        reply.header("www-authenticate", 'Bearer realm="proxywarden"');
        sendError(request, reply, 401, "orders need the admin token, as in Authorization: Bearer TOKEN");
        return false;
      default:
        return admission satisfies never;
    }
  };
}

/** Why a web page may not send the request; null: it may, or no web page sent it. */
function originProblem(request: FastifyRequest, hasToken: boolean): string | null {
  const { origin, "sec-fetch-site": site } = request.headers;
  if (origin === undefined && (site === undefined || site === "none")) return null;
  if (!hasToken) return "a web page may not send this; use curl, or set web.admin_token_file and send the token";
  const isSameSite = site === undefined || site === "none" || site === "same-origin";
  if (isSameSite && (origin === undefined || isOwnOrigin(origin, request.host))) return null;
  return "a page of another origin may not send this; a reverse proxy must keep the Host header, or be in web.trusted_proxies and send X-Forwarded-Host";
}

/** Whether an origin is that of the host asked for. Origins leave out the port that their scheme implies. */
function isOwnOrigin(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: originHost } = new URL(origin);
  const own = `${protocol}//${host}`;
  return URL.canParse(own) && new URL(own).host === originHost && originHost !== "";
}
