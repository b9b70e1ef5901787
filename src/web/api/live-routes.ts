import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { SECOND_MS } from "../../base/duration.ts";
import { runInSlices } from "../../platform/event-loop.ts";
import { acceptsGzip } from "../http/content-negotiation.ts";
import { type Refusal, refuse } from "../http/response.ts";
import type { Route, WebContext } from "../http/route.ts";
import { EventBroadcaster } from "./event-stream.ts";
import { createFleetGrid } from "./fleet-view.ts";
import type { Query } from "./query.ts";

/** When a client whose event stream was rejected may try again. */
const RETRY_AFTER_S = 30;
const TOO_MANY_STREAMS: Refusal = {
  reason: "busy",
  status: 503,
  retryAfterMs: RETRY_AFTER_S * SECOND_MS,
  message: `too many event streams are open, or the server is stopping; try again in ${RETRY_AFTER_S} s`,
};

/** Returns the routes of the fleet grid, the event stream and the history. */
export function liveRoutes(context: WebContext): readonly Route[] {
  const fleetGrid = createFleetGrid({ fleet: context.fleet, marks: (mark) => context.remediation().nodeMarks(mark) });
  const broadcaster = new EventBroadcaster({ ...context, fleetGrid });
  let compressed: { readonly json: Buffer; readonly gzipped: Promise<Buffer> } | null = null;

  async function writeFleet(): Promise<Buffer> {
    await broadcaster.publish();
    return runInSlices(fleetGrid.document(), context.clock);
  }

  async function answerFleet(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const json = await context.requestQueue.occupy(writeFleet());
    reply.type("application/json; charset=utf-8").header("vary", "accept-encoding");
    if (!acceptsGzip(request.headers)) return reply.send(json);
    if (compressed?.json !== json) compressed = { json, gzipped: promisify(gzip)(json) };
    return reply.header("content-encoding", "gzip").send(await compressed.gzipped);
  }

  async function answerEvents(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    if (request.method === "HEAD") return reply.type("text/event-stream").send();
    const { last_event_id = null } = request.query as Query;
    // A browser that reconnects sends the header, which is newer than the query parameter.
    const header = request.headers["last-event-id"];
    if (await broadcaster.subscribe(reply.raw, typeof header === "string" ? header : last_event_id)) {
      reply.hijack();
      return undefined;
    }
    refuse(request, reply, TOO_MANY_STREAMS, context.countRefusal);
    return reply;
  }

  return [
    { method: "GET", path: "/api/v1/fleet", handle: answerFleet },
    { method: "GET", path: "/api/v1/history", handle: () => context.history() },
    {
      method: "GET",
      path: "/api/v1/events",
      parameters: ["last_event_id"],
      handle: answerEvents,
      close: () => broadcaster.close(),
    },
  ];
}
