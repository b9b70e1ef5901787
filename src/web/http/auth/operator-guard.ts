import type { FastifyReply, FastifyRequest } from "fastify";
import { type Refusal, refuse } from "../response.ts";
import type { WebContext } from "../route.ts";
import type { AuthResult } from "./bearer-token.ts";

/** Guards the routes that change something. */
export type OperatorGuard = ReturnType<typeof createOperatorGuard>;

/**
 * Creates a guard. If no operators are configured, a request needs no token, but web pages may not send it. Through DNS
 * rebinding a page can pretend to come from this server, but every POST of a page has an `Origin` header.
 */
export function createOperatorGuard(
  context: Pick<WebContext, "log" | "operators" | "authenticateOperator" | "countRefusal">,
) {
  const { log, operators, authenticateOperator, countRefusal } = context;
  const admitted = new WeakMap<FastifyRequest, string>();

  function refusalOf(request: FastifyRequest): Refusal | null {
    const known = operators();
    const problem = originProblem(request, known.length > 0);
    if (problem !== null) return { reason: "origin", status: 403, message: problem };
    if (known.length === 0) return null;
    const login = authenticateOperator(request.headers.authorization, known);
    if (login.kind === "granted") {
      admitted.set(request, login.operator);
      return null;
    }
    if (login.kind === "wrong") log.warn({ path: request.routeOptions.url, from: request.ip }, "wrong token");
    return { ...TOKEN_REFUSALS[login.kind], ...login };
  }

  return {
    /**
     * Returns whether a request may proceed. Otherwise answers it with 403 if it comes from a web page that may not send
     * it, with 401 if the token is missing or wrong, or with 429 after too many wrong tokens.
     */
    allows(request: FastifyRequest, reply: FastifyReply): boolean {
      const refusal = refusalOf(request);
      return refusal === null || refuse(request, reply, refusal, countRefusal);
    },
    /** Returns the operator who sent an admitted request, or null if no operators were configured. */
    operatorOf: (request: FastifyRequest): string | null => admitted.get(request) ?? null,
  };
}

const TOKEN_REFUSALS: Readonly<Record<Exclude<AuthResult["kind"], "granted">, Refusal>> = {
  throttled: {
    reason: "attempts",
    status: 429,
    message: "too many wrong tokens; valid operator tokens are still accepted",
  },
  wrong: {
    reason: "credentials",
    status: 401,
    message: "the token does not belong to an operator",
    challenge: 'Bearer realm="proxywarden", error="invalid_token"',
  },
  missing: {
    reason: "credentials",
    status: 401,
    message: "an operator token is required: Authorization: Bearer TOKEN",
    challenge: 'Bearer realm="proxywarden"',
  },
};

/** Returns why a web page may not send the request, or null if it may, or no web page sent it. */
function originProblem(request: FastifyRequest, hasOperators: boolean): string | null {
  const { origin, "sec-fetch-site": site } = request.headers;
  if (origin === undefined && (site === undefined || site === "none")) return null;
  if (!hasOperators)
    return "requests from web pages are not accepted; use curl, or configure web.operators and send a token";
  const isSameOrigin = site === undefined || site === "none" || site === "same-origin";
  if (isSameOrigin && (origin === undefined || isOwnOrigin(origin, request.host))) return null;
  return "a web page on another origin may not send this; a reverse proxy must keep the Host header, or be in web.trusted_proxies and send X-Forwarded-Host";
}

/** Returns whether an origin is that of the requested host. Origins omit the default port of their scheme. */
function isOwnOrigin(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: originHost } = new URL(origin);
  const own = `${protocol}//${host}`;
  return URL.canParse(own) && new URL(own).host === originHost && originHost !== "";
}
