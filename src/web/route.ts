import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock, Log } from "../model/ports.ts";

/** One route. GET also answers HEAD. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** Asked at each request; absent: always. */
  exists?(): boolean;
  /** Asked before a body is read. False: it has answered, and the request ends there. */
  admits?(request: FastifyRequest, reply: FastifyReply): boolean;
  handle(request: FastifyRequest, reply: FastifyReply): unknown;
}

/** What routes stand on, whatever they show. */
export interface RouteParts {
  readonly log: Log;
  readonly clock: Pick<Clock, "monotonic">;
}
