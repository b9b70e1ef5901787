import type { FastifyReply, FastifyRequest } from "fastify";
import type { WebRefusal } from "../../metrics/label-values.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { OperatorAuth } from "./auth/bearer-token.ts";

/** One route. GET also answers HEAD. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  /**
   * Which requests are admitted where the web configuration has users. Absent: those of users, and of operators by their
   * tokens. `all`: every request. `admin`: where there are operators, those that `admits` accepts.
   */
  readonly access?: "all" | "admin";
  /** Asked at each request; absent: always. */
  exists?(): boolean;
  /** Asked before a body is read. False: it has answered, and the request ends there. */
  authorize?(request: FastifyRequest, reply: FastifyReply): boolean;
  handle(request: FastifyRequest, reply: FastifyReply): unknown;
  /** Ends the answers that would not end by themselves. */
  close?(): void;
}

/** What routes stand on, whatever they show. */
export interface RouteDeps {
  readonly log: Log;
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  readonly operatorAuth: OperatorAuth;
  countRefusal(reason: WebRefusal): void;
}
