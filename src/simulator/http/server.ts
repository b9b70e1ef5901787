import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";
import { type DeliveryFault, type Reply, type Request, replyBytes } from "./reply.ts";
import {
  beginRequest,
  finishRequest,
  handleRequest,
  type SimulatedService,
  servedUntil,
  serviceTime,
} from "./service.ts";

/** Address of a server. Port 0 means any free port. */
interface ServerOptions {
  readonly port: number;
  /** Defaults to 127.0.0.1. */
  readonly host?: string;
}

/** A listening server. */
export interface SimulatorServer {
  /** The base URL for clients. */
  readonly url: string;
  readonly port: number;
  /** Stops listening and closes all connections. */
  close(): Promise<void>;
}

/**
 * Maximum number of bytes to keep of a request body; the rest is discarded. This is twice the number of characters that
 * the service accepts, so an ASCII body that is cut off here is still answered with 413.
 */
const REQUEST_BYTES_MAX = 128 * 1_024;
/** The keep-alive timeout of common proxies, so that a rate-limited client can reuse its connection. */
const KEEP_ALIVE_MS: DurationMs = 75 * SECOND_MS;
const DRIP_INTERVAL_MS: DurationMs = SECOND_MS / 10;
const PADDING_BYTES = 64 * 1_024;
const BLANK = " ";

/**
 * Serves the simulated service over HTTP. `clock` drives its time. Delivery faults are applied to the real socket.
 * Rejects with the system's error if it can't listen on the address.
 */
export async function startServer(
  service: SimulatedService,
  clock: Clock,
  options: ServerOptions,
): Promise<SimulatorServer> {
  const host = options.host ?? "127.0.0.1";
  const time = serviceTime(service.clockAnchors, clock);
  const server = createServer((incoming, response) => {
    beginRequest(service);
    const gone = new AbortController();
    let doneAt = Number.NEGATIVE_INFINITY;
    // This is emitted after a complete reply, a socket error or an abort by the client.
    response.once("close", () => {
      finishRequest(service, doneAt);
      gone.abort();
    });
    readRequest(incoming)
      .then((request) => {
        if (request === null) return void response.destroy();
        const reply = handleRequest(service, request, time());
        doneAt = servedUntil(reply, time());
        return send(response, reply, clock, gone.signal);
      })
      // HTTP can't represent the reply, for example a header with a line feed. The client must not wait for it.
      .catch(() => response.destroy());
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    port,
    close() {
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

/** Reads the complete request. Returns null if the client disconnected before the end. */
async function readRequest(incoming: IncomingMessage): Promise<Request | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes <= REQUEST_BYTES_MAX) chunks.push(chunk);
    }
  } catch {
    return null;
  }
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return {
    method: incoming.method ?? "GET",
    path: incoming.url ?? "/",
    headers,
    body: Buffer.concat(chunks).toString("utf8"),
  };
}

async function send(response: ServerResponse, reply: Reply, clock: Clock, gone: AbortSignal): Promise<void> {
  const { deliveryFault } = reply;
  const bytes = replyBytes(reply);
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // The service sets the header from its own clock, which may be skewed.
  response.sendDate = false;
  if (deliveryFault?.kind === "hang") return;
  if (deliveryFault?.kind === "reset") {
    response.socket?.resetAndDestroy();
    return;
  }
  const length = deliveryFault?.kind === "huge_body" ? Math.max(deliveryFault.bytes, body.length) : body.length;
  const bodyless = reply.status === 204 || reply.status === 304;
  response.writeHead(reply.status, { ...reply.headers, ...(bodyless ? {} : { "content-length": length }) });
  if (deliveryFault === undefined) response.end(body);
  else await sendWithFault(response, body, deliveryFault, length, clock, gone);
}

async function sendWithFault(
  response: ServerResponse,
  body: Buffer,
  deliveryFault: Exclude<DeliveryFault, { kind: "hang" | "reset" }>,
  length: number,
  clock: Clock,
  gone: AbortSignal,
): Promise<void> {
  switch (deliveryFault.kind) {
    case "truncate":
      await write(response, body.subarray(0, Math.floor(body.length / 2)), gone);
      response.destroy();
      return;
    case "huge_body":
      for (let left = length - body.length; left > 0 && !gone.aborted; left -= PADDING_BYTES) {
        await write(response, Buffer.alloc(Math.min(left, PADDING_BYTES), BLANK), gone);
      }
      response.end(body);
      return;
    case "slow_drip": {
      response.flushHeaders();
      const piece = Math.max(1, Math.round((deliveryFault.bytesPerSecond * DRIP_INTERVAL_MS) / SECOND_MS));
      // A piece is at least one byte, so the interval is longer at the lowest rates.
      const everyMs = (piece / deliveryFault.bytesPerSecond) * SECOND_MS;
      for (let sent = 0; sent < body.length && !gone.aborted; sent += piece) {
        await clock.sleep(everyMs, gone);
        await write(response, body.subarray(sent, sent + piece), gone);
      }
      response.end();
      return;
    }
    default:
      deliveryFault satisfies never;
  }
}

/** Writes bytes and waits until they are flushed or the exchange has ended. */
function write(response: ServerResponse, bytes: Buffer, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      gone.removeEventListener("abort", done);
      resolve();
    };
    gone.addEventListener("abort", done);
    if (gone.aborted) done();
    else response.write(bytes, done);
  });
}
