import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { SECOND_MS } from "../../../base/duration.ts";
import type { WebRefusal } from "../../../metrics/label-values.ts";
import type { Clock, Log } from "../../../model/ports.ts";
import { createTokenBucket } from "../limits/token-bucket.ts";
import { rawResponse } from "../security-headers.ts";
import type { TlsSettings } from "./tls-settings.ts";

/** Performs the TLS handshake of new connections, and checks client certificates. */
export interface TlsAcceptor {
  /** Hands on what is decrypted, once it is let in; ends the connection otherwise. */
  accept(socket: Socket, tls: TlsSettings): void;
  /** Ends all connections that have not shaken hands yet. */
  closePending(): void;
}

/** What an encrypter stands on. */
export interface TlsAcceptorDeps {
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
  countRefusal(reason: WebRefusal): void;
  /** Is handed connections as they are decrypted. */
  onConnection(socket: TLSSocket): void;
}

/** Lines of the log about clients whose certificate is not let in; more would drown all else that it says. */
const CERTIFICATE_LOG_RATE = { intervalMs: 10 * SECOND_MS, burst: 10 };

/** The response shows up in the scraper's log if TLS is enabled only on this side. */
const PLAIN_HTTP_RESPONSE = rawResponse(400, "Bad Request", "plain HTTP request sent to an HTTPS server: use https://");

/** Creates an acceptor without connections. */
export function createTlsAcceptor({ clock, log, countRefusal, onConnection: serve }: TlsAcceptorDeps): TlsAcceptor {
  /** Connections that have not shaken hands yet, by where they come from: that tells one from the other. */
  const handshakes = new Map<string, Socket>();
  const logBucket = createTokenBucket(CERTIFICATE_LOG_RATE);
  /** They listen to nothing: connections are handed to them, and they hand on those that shook hands. */
  const servers = new WeakMap<TlsSettings, Server>();

  function refuseCertificate({ remoteAddress: from }: TLSSocket, why: string): void {
    countRefusal("client_certificate");
    const level = logBucket.take(clock.monotonic()) === 0 ? "warn" : "debug";
    log[level]({ from, why }, "client certificate rejected");
  }

  function serverOf(tls: TlsSettings): Server {
    const known = servers.get(tls);
    if (known !== undefined) return known;
    const server = createServer(tls.options);
    servers.set(tls, server);
    server.on("secureConnection", (socket: TLSSocket) => {
      handshakes.delete(peerAddress(socket));
      const why = tls.refusal(socket);
      if (why === null) return serve(socket);
      refuseCertificate(socket, why);
      socket.destroy();
    });
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
      // Node ends a handshake over a certificate that it can't verify as if the client had hung up.
      if (socket.authorizationError) {
        refuseCertificate(socket, `its certificate is not verified: ${socket.authorizationError}`);
      } else {
        countRefusal("handshake");
        log.debug({ from: socket.remoteAddress, why: error.message }, "TLS handshake failed");
      }
      if (error.code === "ERR_SSL_HTTP_REQUEST") handshakes.get(peerAddress(socket))?.end(PLAIN_HTTP_RESPONSE);
      socket.destroy();
    });
    return server;
  }

  return {
    accept(socket, tls) {
      const origin = peerAddress(socket);
      handshakes.set(origin, socket);
      socket.once("close", () => handshakes.delete(origin));
      serverOf(tls).emit("connection", socket);
    },
    closePending() {
      for (const socket of handshakes.values()) socket.destroy();
    },
  };
}

const peerAddress = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
