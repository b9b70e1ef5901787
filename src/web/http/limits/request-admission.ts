import type { FastifyReply, FastifyRequest } from "fastify";
import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import type { WebRefusal } from "../../../metrics/label-values.ts";
import type { Clock, Log } from "../../../model/ports.ts";
import type { Operator } from "../../../model/remediation/operator.ts";
import type { LoginResult, UserAuth } from "../auth/basic-auth.ts";
import type { OperatorAuth } from "../auth/bearer-token.ts";
import { clientKey } from "../client-address.ts";
import { sendError } from "../error-response.ts";
import type { Route } from "../route.ts";
import type { WebSettings } from "../web-settings.ts";
import { CLIENT_REQUESTS_PER_SECOND, createRequestRateLimiter, type Traffic } from "./request-rates.ts";

/** Decides on requests before anything else is done for them. */
export interface RequestAuthorizer {
  /**
   * Whether the request goes on; if not, it is answered. Told at once, but where a password has to be checked. `route`:
   * undefined where there is none.
   */
  authorize(
    request: FastifyRequest,
    reply: FastifyReply,
    webSettings: WebSettings,
    route: Route | undefined,
  ): boolean | Promise<boolean>;
}

/** What it stands on. */
export interface RequestAuthorizerDeps {
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
  readonly userAuth: UserAuth;
  readonly operatorAuth: OperatorAuth;
  operators(): readonly Operator[];
  countRefusal(reason: WebRefusal): void;
}

/** Response to a rejected request. */
interface Refusal {
  readonly reason: WebRefusal;
  readonly status: 401 | 429 | 503;
  readonly message: string;
  readonly retryAfterMs?: DurationMs;
  /** Whoever goes on all the same has to connect anew, of which there is a limit as well. */
  readonly closesConnection?: true;
}

const CHALLENGE = 'Basic realm="proxywarden", charset="UTF-8"';

/** Creates request authorization without recorded clients. */
export function createRequestAuthorizer({
  clock,
  log,
  userAuth,
  operatorAuth,
  operators,
  countRefusal,
}: RequestAuthorizerDeps): RequestAuthorizer {
  const rates = createRequestRateLimiter(clock);

  function reject(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): false {
    const { reason, status, message, retryAfterMs = 0, closesConnection: ends = false } = refusal;
    countRefusal(reason);
    if (retryAfterMs > 0) reply.header("retry-after", Math.ceil(retryAfterMs / SECOND_MS));
    if (status === 401) reply.header("www-authenticate", CHALLENGE);
    if (ends) reply.header("connection", "close");
    sendError(request, reply, status, message);
    return false;
  }

  function rateExcess({ ip }: FastifyRequest, { rate }: WebSettings, route: Route | undefined): Refusal | null {
    const excess = rates.count(clientKey(ip), trafficClass(route), rate);
    if (excess === null) return null;
    const { retryAfterMs } = excess;
    const refusal = { reason: "rate", status: 429, retryAfterMs } as const;
    return excess.of === "client"
      ? { ...refusal, message: TOO_MANY_REQUESTS, closesConnection: true }
      : { ...refusal, message: "rate_limit exceeded" };
  }

  /** Who gives orders may see what they do. */
  function authenticate(
    { headers, ip }: FastifyRequest,
    users: WebSettings["users"],
  ): LoginResult | Promise<LoginResult> {
    const { authorization } = headers;
    const known = /^bearer /i.test(authorization ?? "") ? operators() : [];
    if (known.length > 0) return operatorAuth.authenticate(authorization, known);
    return userAuth.authenticate(authorization, users, clientKey(ip));
  }

  /** The guard of an admin route asks for the token by itself. */
  const isOpen = (route: Route | undefined): boolean =>
    route?.access === "all" || (route?.access === "admin" && operators().length > 0);

  return {
    authorize(request, reply, webSettings, route) {
      const excess = rateExcess(request, webSettings, route);
      if (excess !== null) return reject(request, reply, excess);
      if (webSettings.users.size === 0 || isOpen(route)) return true;
      const respond = (login: LoginResult): boolean => {
        if (login.kind === "wrong") log.warn({ from: request.ip }, "basic auth failed");
        const refusal = loginRefusal(login);
        return refusal === null || reject(request, reply, refusal);
      };
      const login = authenticate(request, webSettings.users);
      if (!(login instanceof Promise)) return respond(login);
      return login.then(respond, (error: unknown) => {
        log.error({ error }, "password check failed");
        return reject(request, reply, PASSWORD_CHECKS_BUSY);
      });
    },
  };
}

const TOO_MANY_REQUESTS = `more than ${CLIENT_REQUESTS_PER_SECOND} requests per second from one address`;

const PASSWORD_CHECKS_BUSY: Refusal = {
  ...{ reason: "busy", status: 503, retryAfterMs: SECOND_MS },
  message: "the password could not be checked",
};

function loginRefusal(login: LoginResult): Refusal | null {
  switch (login.kind) {
    case "granted":
      return null;
    case "missing":
      return { reason: "credentials", status: 401, message: "basic auth is required" };
    case "wrong":
      return { reason: "credentials", status: 401, message: "wrong user or password" };
    case "throttled":
      return {
        ...{ reason: "attempts", status: 429, retryAfterMs: login.retryAfterMs },
        message:
          "too many wrong passwords or tokens from this address; credentials that were accepted before still work",
      };
    case "busy":
      return {
        ...{ reason: "busy", status: 503, retryAfterMs: login.retryAfterMs },
        message: "too many password checks are pending",
      };
    default:
      return login satisfies never;
  }
}

function trafficClass(route: Route | undefined): Traffic {
  if (route?.access === "all") return "health";
  return route?.path === "/metrics" ? "metrics" : "other";
}
