import type { FastifyReply, FastifyRequest } from "fastify";
import type { WebRefusal } from "../../model/label-values.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { Operator } from "../../model/remediation/operator-command.ts";
import type { Parameter } from "../api/query.ts";
import type { AuthenticateOperator } from "./auth/bearer-token.ts";
import type { IsTrustedProxy } from "./client-address.ts";
import type { RequestQueue } from "./request-queue.ts";
import type { LiveWebSettings } from "./web-settings.ts";

/** One route. A GET route also answers HEAD. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  /**
   * Who may use the route if the web configuration has users. By default, these are users, and operators with their
   * tokens. With `all`, every client may use it. With `admin`, clients that `authorize` allows may use it if operators
   * are configured, and otherwise users may.
   */
  readonly access?: "all" | "admin";
  /** Allowed query parameters. Absent means none below `/api/`, and any elsewhere. */
  readonly parameters?: readonly Parameter[];
  /** Returns whether the route exists. It is called for each request. Absent means always. */
  exists?(): boolean;
  /** Called before the body is read. If it returns false, it has answered the request. */
  authorize?(request: FastifyRequest, reply: FastifyReply): boolean;
  handle(request: FastifyRequest, reply: FastifyReply): unknown;
  /** Ends the streams of the route when the server stops. */
  close?(): void;
}

/** What the parts of the web server share. */
export interface WebContext {
  readonly log: Log;
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  readonly webSettings: LiveWebSettings;
  readonly requestQueue: RequestQueue;
  readonly isTrustedProxy: IsTrustedProxy;
  readonly authenticateOperator: AuthenticateOperator;
  /** Called for each request, because a reload may change them. */
  operators(): readonly Operator[];
  countRefusal(reason: WebRefusal): void;
}
