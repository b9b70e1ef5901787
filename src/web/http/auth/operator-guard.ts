import type { FastifyReply, FastifyRequest } from "fastify";
import { SECOND_MS } from "../../../base/duration.ts";
import type { WebRefusal } from "../../../metrics/label-values.ts";
import type { Operator } from "../../../model/remediation/operator.ts";
import { sendError } from "../error-response.ts";
import type { RouteDeps } from "../route.ts";

/** Guards the routes that change something. */
export interface OperatorGuard {
  /**
   * Whether a request may go on; if not, it is answered. A web page of another origin is refused with 403, a missing or
   * wrong token with 401, too many wrong ones with 429.
   */
  allows(request: FastifyRequest, reply: FastifyReply): boolean;
  /** Name of the operator whose token came with an admitted request; null: no operators were configured. */
  operatorOf(request: FastifyRequest): string | null;
}

/**
 * Creates a guard. `operators` is called for each request. Where there are none, a request needs no token, but then no web
 * page may send it: a page can be made to look as if it came from this server (DNS rebinding), but a browser always says
 * that a page sent the request.
 */
export function createOperatorGuard(
  operators: () => readonly Operator[],
  { log, operatorAuth, countRefusal }: RouteDeps,
): OperatorGuard {
  const admitted = new WeakMap<FastifyRequest, string>();

  function refuse(request: FastifyRequest, reply: FastifyReply, { reason, status, message }: Refusal): false {
    countRefusal(reason);
    sendError(request, reply, status, message);
    return false;
  }

  function check(request: FastifyRequest, reply: FastifyReply, known: readonly Operator[]): boolean {
    const admission = operatorAuth.authenticate(request.headers.authorization, known);
    switch (admission.kind) {
      case "granted":
        admitted.set(request, admission.operator);
        return true;
      case "throttled":
        reply.header("retry-after", Math.ceil(admission.retryAfterMs / SECOND_MS));
        return refuse(request, reply, TOO_MANY_WRONG_TOKENS);
      case "wrong":
        log.warn({ path: request.routeOptions.url, from: request.ip }, "wrong token given");
        reply.header("www-authenticate", 'Bearer realm="proxywarden", error="invalid_token"');
        return refuse(request, reply, WRONG_TOKEN);
      case "missing":
        reply.header("www-authenticate", 'Bearer realm="proxywarden"');
        return refuse(request, reply, MISSING_TOKEN);
      default:
        return admission satisfies never;
    }
  }

  return {
    allows(request, reply) {
      const known = operators();
      const foreign = originProblem(request, known.length > 0);
      if (foreign !== null) return refuse(request, reply, { reason: "origin", status: 403, message: foreign });
      return known.length === 0 || check(request, reply, known);
    },
    operatorOf: (request) => admitted.get(request) ?? null,
  };
}

interface Refusal {
  readonly reason: WebRefusal;
  readonly status: 401 | 403 | 429;
  readonly message: string;
}

const TOO_MANY_WRONG_TOKENS: Refusal = {
  ...{ reason: "attempts", status: 429 },
  message: "too many wrong tokens; valid operator tokens are still accepted",
};
const WRONG_TOKEN: Refusal = {
  reason: "credentials",
  status: 401,
  message: "the token does not belong to an operator",
};
const MISSING_TOKEN: Refusal = {
  ...{ reason: "credentials", status: 401 },
  message: "an operator token is required: Authorization: Bearer TOKEN",
};

/** Why a web page may not send the request; null: it may, or no web page sent it. */
function originProblem(request: FastifyRequest, hasToken: boolean): string | null {
  const { origin, "sec-fetch-site": site } = request.headers;
  if (origin === undefined && (site === undefined || site === "none")) return null;
  if (!hasToken)
    return "requests from web pages are not accepted; use curl, or configure web.operators and send a token";
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
