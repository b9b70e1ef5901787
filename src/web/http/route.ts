import type { FastifyReply, FastifyRequest } from "fastify";
import type { WebRefusal } from "../../model/label-values.ts";
import type { Parameter } from "../api/query.ts";
import { createUserAuth } from "./auth/basic-auth.ts";
import { createBcryptMatches } from "./auth/bcrypt.ts";
import { createOperatorAuth } from "./auth/bearer-token.ts";
import { createRequestQueue } from "./request-queue.ts";
import type { WebServerOptions } from "./server.ts";
import { OPEN_WEB_SETTINGS, watchWebSettings } from "./web-settings.ts";

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
  /** Returns the body of the response, or answers the request itself. */
  handle(request: FastifyRequest, reply: FastifyReply): unknown;
  /** Ends the streams of the route when the server stops. */
  close?(): void;
}

/** Shared by all servers of the process, because a thread would outlive the server that a reload replaces. */
const workerBcryptMatches = createBcryptMatches();

/** The dependencies and the state that all parts of the web server share. */
export type WebContext = ReturnType<typeof createWebContext>;

/** Creates the context of a web server. */
export const createWebContext = ({
  deps,
  settings = OPEN_WEB_SETTINGS,
  bcryptMatches = workerBcryptMatches,
  ...shell
}: WebServerOptions) => ({
  ...deps,
  log: shell.log,
  clock: shell.clock,
  webSettings: watchWebSettings(settings, shell),
  requestQueue: createRequestQueue(shell.clock),
  authenticateOperator: createOperatorAuth(shell.clock),
  authenticateUser: createUserAuth(bcryptMatches, shell.clock),
  countRefusal: (reason: WebRefusal): void => shell.metrics.inc("proxywarden_web_refusals_total", { reason }),
});
