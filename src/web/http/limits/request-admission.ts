import type { FastifyReply, FastifyRequest } from "fastify";
import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import type { WebRefusal } from "../../../metrics/label-values.ts";
import type { Operator } from "../../../model/remediation/operator.ts";
import type { Clock, Log } from "../../../model/ports.ts";
import { sendError } from "../error-response.ts";
import { clientOf } from "../client-address.ts";
import type { Gate } from "../auth/bearer-token.ts";
import type { Login, Passwords } from "../auth/basic-auth.ts";
import { CLIENT_REQUESTS_PER_SECOND, createRates, type Traffic } from "./request-rates.ts";
import type { Route } from "../route.ts";
import type { Terms } from "../web-settings.ts";

/** Decides on requests before anything else is done for them. */
export interface Admission {
  /**
   * Whether the request goes on; if not, it is answered. Told at once, but where a password has to be checked. `route`:
   * undefined where there is none.
   */
  admit(
    request: FastifyRequest,
    reply: FastifyReply,
    terms: Terms,
    route: Route | undefined,
  ): boolean | Promise<boolean>;
}

/** What it stands on. */
export interface AdmissionParts {
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
  readonly passwords: Passwords;
  readonly gate: Gate;
  operators(): readonly Operator[];
  refused(reason: WebRefusal): void;
}

/** Response to a rejected request. */
interface Refusal {
  readonly reason: WebRefusal;
  readonly status: 401 | 429 | 503;
  readonly message: string;
  readonly retryAfterMs?: DurationMs;
  /** Whoever goes on all the same has to connect anew, of which there is a limit as well. */
  readonly ends?: true;
}

const CHALLENGE = 'Basic realm="proxywarden", charset="UTF-8"';

/** Creates request authorization without recorded clients. */
export function createAdmission({ clock, log, passwords, gate, operators, refused }: AdmissionParts): Admission {
  const rates = createRates(clock);

  function turnAway(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): false {
    const { reason, status, message, retryAfterMs = 0, ends = false } = refusal;
    refused(reason);
    if (retryAfterMs > 0) reply.header("retry-after", Math.ceil(retryAfterMs / SECOND_MS));
    if (status === 401) reply.header("www-authenticate", CHALLENGE);
    if (ends) reply.header("connection", "close");
    sendError(request, reply, status, message);
    return false;
  }

  function excessOf({ ip }: FastifyRequest, { rate }: Terms, route: Route | undefined): Refusal | null {
    const excess = rates.count(clientOf(ip), trafficOf(route), rate);
    if (excess === null) return null;
    const { retryAfterMs } = excess;
    const refusal = { reason: "rate", status: 429, retryAfterMs } as const;
    return excess.of === "client"
      ? { ...refusal, message: TOO_MANY, ends: true }
      : { ...refusal, message: "rate_limit exceeded" };
  }

  /** Who gives orders may see what they do. */
  function loginOf({ headers, ip }: FastifyRequest, users: Terms["users"]): Login | Promise<Login> {
    const { authorization } = headers;
    const known = /^bearer /i.test(authorization ?? "") ? operators() : [];
    if (known.length > 0) return gate.judge(authorization, known);
    return passwords.judge(authorization, users, clientOf(ip));
  }

  /** The guard of an admin route asks for the token by itself. */
  const isOpen = (route: Route | undefined): boolean =>
    route?.admission === "all" || (route?.admission === "admin" && operators().length > 0);

  return {
    admit(request, reply, terms, route) {
      const excess = excessOf(request, terms, route);
      if (excess !== null) return turnAway(request, reply, excess);
      if (terms.users.size === 0 || isOpen(route)) return true;
      const conclude = (login: Login): boolean => {
        if (login.kind === "wrong") log.warn({ from: request.ip }, "basic auth failed");
        const refusal = refusalOf(login);
        return refusal === null || turnAway(request, reply, refusal);
      };
      const login = loginOf(request, terms.users);
      if (!(login instanceof Promise)) return conclude(login);
      return login.then(conclude, (error: unknown) => {
        log.error({ error }, "password check failed");
        return turnAway(request, reply, UNCHECKED);
      });
    },
  };
}

const TOO_MANY = `more than ${CLIENT_REQUESTS_PER_SECOND} requests per second from one address`;

const UNCHECKED: Refusal = {
  ...{ reason: "busy", status: 503, retryAfterMs: SECOND_MS },
  message: "the password could not be checked",
};

function refusalOf(login: Login): Refusal | null {
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
        message: "too many wrong passwords or tokens from this address; credentials that were accepted before still work",
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

function trafficOf(route: Route | undefined): Traffic {
  if (route?.admission === "all") return "health";
  return route?.path === "/metrics" ? "metrics" : "other";
}
