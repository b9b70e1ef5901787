import type { FastifyReply, FastifyRequest } from "fastify";
import type { Result } from "../../base/result.ts";
import type { DaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { WebRefusal } from "../../model/label-values.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { CommandReply, Operator, OperatorCommand } from "../../model/remediation/operator-command.ts";
import type { Fleet } from "../../model/snapshot.ts";
import type { RemediationView } from "../../remediation/status/views.ts";
import type { EventLog } from "../api/event-log.ts";
import type { HistoryView } from "../api/history.ts";
import type { Parameter, Query } from "../api/query.ts";
import type { MetricsEndpoint } from "../scrape/metrics-endpoint.ts";
import { createUserAuth } from "./auth/basic-auth.ts";
import { type BcryptMatches, createBcryptMatches } from "./auth/bcrypt.ts";
import { createOperatorAuth } from "./auth/bearer-token.ts";
import type { IsTrustedProxy } from "./client-address.ts";
import { createRequestQueue } from "./request-queue.ts";
import { type LoadedWebSettings, OPEN_WEB_SETTINGS, watchWebSettings } from "./web-settings.ts";

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

/** Reads the configuration again and applies it. The error lists every problem. */
export type Reload = () => Promise<Result<void, readonly string[]>>;

/** What the routes show and do. */
export interface WebDeps {
  /** Null before the first snapshot, and on a standby. */
  fleet(): Fleet | null;
  readonly eventLog: EventLog;
  /** Distinguishes the events of this process from those of earlier ones. */
  readonly epoch: string;
  history(): HistoryView;
  execute(command: OperatorCommand): Promise<CommandReply>;
  /** Called for each request, because a reload may change them. Without operators the routes of commands don't exist. */
  operators(): readonly Operator[];
  readonly scrape: MetricsEndpoint["scrape"];
  /** Reloads the configuration. `operator` is the one who requested it, or null if no operators are configured. */
  reload(operator: string | null): ReturnType<Reload>;
  /** Called for each connection and request, because a reload may change the list. */
  readonly isTrustedProxy: IsTrustedProxy;
  status(): object | Promise<object>;
  /** Returns the steps of the answer, which block the event loop for a fraction of a millisecond each. */
  nodes(query: Query): Iterator<unknown, object>;
  /** Null if there is no such node. */
  node(id: string): object | null;
  budget(): object;
  /** Called for each request, because a reload may replace it. */
  remediation(): RemediationView;
}

/** Options of `startWebServer`. Port 0 picks a free port. */
export interface WebServerOptions {
  readonly host: string;
  readonly port: number;
  readonly deps: WebDeps;
  readonly log: Log;
  readonly clock: Pick<Clock, "sleep" | "monotonic">;
  readonly metrics: Pick<DaemonMetrics, "inc" | "set">;
  /** Absent means plain HTTP without authentication. */
  readonly settings?: LoadedWebSettings;
  readonly bcryptMatches?: BcryptMatches;
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
