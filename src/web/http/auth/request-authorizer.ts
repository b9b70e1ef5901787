import type { FastifyReply, FastifyRequest } from "fastify";
import { SECOND_MS } from "../../../base/duration.ts";
import { clientKey } from "../client-address.ts";
import { CLIENT_REQUESTS_PER_SECOND, createRequestRateLimiter, type Traffic } from "../request-rates.ts";
import { type Refusal, refuse } from "../response.ts";
import type { Route, WebContext } from "../route.ts";
import type { WebSettings } from "../web-settings.ts";
import type { LoginResult } from "./basic-auth.ts";

/** Creates the authorization of requests, which applies the rate limits and basic auth. */
export function createRequestAuthorizer(context: WebContext) {
  const { log, clock, webSettings, authenticateOperator, authenticateUser, operators, countRefusal } = context;
  const countRequest = createRequestRateLimiter(clock);

  function rateRefusal({ ip }: FastifyRequest, { rate }: WebSettings, route: Route | undefined): Refusal | null {
    const excess = countRequest(clientKey(ip), trafficClass(route), rate);
    if (excess === null) return null;
    const refusal = { reason: "rate", status: 429, retryAfterMs: excess.retryAfterMs } as const;
    return excess.of === "client"
      ? { ...refusal, message: TOO_MANY_REQUESTS, closesConnection: true }
      : { ...refusal, message: RATE_LIMIT_EXCEEDED };
  }

  /** Operators may use their token instead of a password. */
  function authenticate({ headers, ip }: FastifyRequest, users: WebSettings["users"]) {
    const { authorization } = headers;
    const known = /^bearer /i.test(authorization ?? "") ? operators() : [];
    if (known.length > 0) return authenticateOperator(authorization, known);
    return authenticateUser(authorization, users, clientKey(ip));
  }

  /** Admin routes check the token themselves. */
  const isOpen = (route: Route | undefined): boolean =>
    route?.access === "all" || (route?.access === "admin" && operators().length > 0);

  /** Returns whether a request may proceed, and answers it if not. `route` is undefined if the path has none. */
  return async (request: FastifyRequest, reply: FastifyReply, route: Route | undefined): Promise<boolean> => {
    const answer = (refusal: Refusal | null) => refusal === null || refuse(request, reply, refusal, countRefusal);
    const settings = webSettings.current();
    const excess = rateRefusal(request, settings, route);
    if (excess !== null) return answer(excess);
    if (settings.users.size === 0 || isOpen(route)) return true;
    try {
      const login = await authenticate(request, settings.users);
      if (login.kind === "wrong") log.warn({ from: request.ip }, "authentication failed");
      return answer(login.kind === "granted" ? null : { ...LOGIN_REFUSALS[login.kind], ...login });
    } catch (error) {
      log.error({ err: error }, "password check failed");
      return answer(PASSWORD_CHECK_FAILED);
    }
  };
}

const TOO_MANY_REQUESTS = `more than ${CLIENT_REQUESTS_PER_SECOND} requests per second from one address`;
const RATE_LIMIT_EXCEEDED = "more requests than rate_limit in the web configuration allows for all clients together";
const CHALLENGE = 'Basic realm="proxywarden", charset="UTF-8"';

const PASSWORD_CHECK_FAILED: Refusal = {
  reason: "busy",
  status: 503,
  retryAfterMs: SECOND_MS,
  message: "the password could not be checked",
};

const LOGIN_REFUSALS: Readonly<Record<Exclude<LoginResult["kind"], "granted">, Refusal>> = {
  missing: { reason: "credentials", status: 401, message: "basic auth is required", challenge: CHALLENGE },
  wrong: { reason: "credentials", status: 401, message: "wrong user, password or token", challenge: CHALLENGE },
  throttled: {
    reason: "attempts",
    status: 429,
    message:
      "too many wrong passwords from this address, or too many wrong tokens; operators' tokens, and passwords that were accepted before, still work",
  },
  busy: { reason: "busy", status: 503, message: "too many password checks are pending" },
};

function trafficClass(route: Route | undefined): Traffic {
  if (route?.access === "all") return "health";
  return route?.path === "/metrics" ? "metrics" : "other";
}
