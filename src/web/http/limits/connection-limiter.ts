import type { Server } from "node:http";
import type { Socket } from "node:net";
import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import type { WebRefusal } from "../../../metrics/label-values.ts";
import type { Clock, Log } from "../../../model/ports.ts";
import { clientKey, createPerClient, type IsTrustedProxy } from "../client-address.ts";
import { rawResponse } from "../security-headers.ts";
import { createTlsAcceptor } from "../tls/tls-handshake.ts";
import type { LiveWebSettings } from "../web-settings.ts";
import { createTokenBucket } from "./token-bucket.ts";

/** Takes connections in, within bounds, by the TLS that is in force when they come. */
export interface ConnectionLimiter {
  /** Ends the connections that have come to no request: those that shake hands still, and those that are turned away. */
  closeUnaccepted(): void;
  /** Cuts all connections. */
  closeAll(): void;
}

/** What a door stands on. */
export interface ConnectionLimiterDeps {
  readonly webSettings: LiveWebSettings;
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
  readonly isTrustedProxy: IsTrustedProxy;
  countRefusal(reason: WebRefusal): void;
}

/** Scrapers, probes and a few people; far more is a mistake, and each may hold an exposition. */
const CONNECTIONS_MAX = 256;
/** A browser has six, a Prometheus one or two; so no client can take the places of all others. */
const CLIENT_CONNECTIONS_MAX = 64;
/** New connections of one client, in the long run; a handshake of TLS takes a millisecond or two. */
const CLIENT_CONNECT_RATE = { intervalMs: SECOND_MS / 50, burst: 500 };
/** A rejected client reads the response at once, or not at all. */
const REJECTION_LINGER_MS_MAX: DurationMs = SECOND_MS;
const REJECTIONS_LINGERING_MAX = 64;

const TOO_MANY_CONNECTIONS_RESPONSE = rawResponse(503, "Service Unavailable", "too many connections; try again later", [
  "retry-after: 1",
]);

/**
 * Stands between a server and those who connect to it: the server gets what it would have got without, decrypted where
 * it came encrypted. TLS may so change, or come and go, without listening anew.
 */
export function createConnectionLimiter(server: Server, parts: ConnectionLimiterDeps): ConnectionLimiter {
  const { webSettings, clock, isTrustedProxy, countRefusal } = parts;
  const open = new Map<Socket, string>();
  const connects = createPerClient(() => createTokenBucket(CLIENT_CONNECT_RATE));
  const rejections = createRejections();
  const listeners = server.listeners("connection");
  const serve = (socket: Socket) => {
    for (const listener of listeners) listener.call(server, socket);
  };
  const encrypter = createTlsAcceptor({ ...parts, onConnection: serve });

  function isWithinLimits(client: string, address: string | undefined): boolean {
    // A proxy's connections are those of all its clients.
    if (isTrustedProxy(address)) return open.size < CONNECTIONS_MAX;
    if (connects.get(client).take(clock.monotonic()) > 0 || open.size >= CONNECTIONS_MAX) return false;
    let own = 0;
    for (const other of open.values()) if (other === client) own++;
    return own < CLIENT_CONNECTIONS_MAX;
  }

  server.removeAllListeners("connection").on("connection", (socket) => {
    // The server handles errors of its connections; errors before and after that are ignored.
    socket.on("error", () => undefined);
    const client = clientKey(socket.remoteAddress);
    const { tls } = webSettings.current();
    if (!isWithinLimits(client, socket.remoteAddress)) {
      countRefusal("connections");
      // A rejected TLS client is disconnected without a handshake.
      if (tls === null) rejections.say(socket);
      else socket.destroy();
      return;
    }
    open.set(socket, client);
    socket.once("close", () => open.delete(socket));
    if (tls === null) serve(socket);
    else encrypter.accept(socket, tls);
  });

  return {
    closeUnaccepted() {
      encrypter.closePending();
      rejections.clear();
    },
    closeAll() {
      for (const socket of open.keys()) socket.destroy();
    },
  };
}

/** Sends the rejection to clients beyond the connection limit. */
function createRejections() {
  const lingering = new Set<Socket>();
  return {
    say(socket: Socket): void {
      if (lingering.size >= REJECTIONS_LINGERING_MAX) {
        socket.destroy();
        return;
      }
      lingering.add(socket);
      socket.once("close", () => lingering.delete(socket));
      socket.setTimeout(REJECTION_LINGER_MS_MAX, () => socket.destroy());
      // Closed with anything unread, it would be reset, and the reason lost on its way.
      socket.resume();
      socket.once("end", () => socket.destroy());
      socket.end(TOO_MANY_CONNECTIONS_RESPONSE);
    },
    clear(): void {
      for (const socket of lingering) socket.destroy();
    },
  };
}
