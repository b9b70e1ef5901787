import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { SECOND_MS } from "../../../base/duration.ts";
import type { WebRefusal } from "../../../metrics/label-values.ts";
import type { Clock, Log } from "../../../model/ports.ts";
import { createBucket } from "../limits/token-bucket.ts";
import { rawAnswer } from "../security-headers.ts";
import type { TlsTerms } from "./tls-settings.ts";

/** Performs the TLS handshake of new connections, and checks client certificates. */
export interface Encrypter {
  /** Hands on what is decrypted, once it is let in; ends the connection otherwise. */
  take(socket: Socket, tls: TlsTerms): void;
  /** Ends all connections that have not shaken hands yet. */
  clear(): void;
}

/** What an encrypter stands on. */
export interface EncrypterParts {
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
  refused(reason: WebRefusal): void;
  /** Is handed connections as they are decrypted. */
  serve(socket: TLSSocket): void;
}

/** Lines of the log about clients whose certificate is not let in; more would drown all else that it says. */
const CERTIFICATE_LINES = { intervalMs: 10 * SECOND_MS, burst: 10 };

/** The response shows up in the scraper's log if TLS is enabled only on this side. */
const PLAIN_HTTP_ANSWER = rawAnswer(400, "Bad Request", "plain HTTP request sent to an HTTPS server: use https://");

/** Creates an acceptor without connections. */
export function createEncrypter({ clock, log, refused, serve }: EncrypterParts): Encrypter {
  /** Connections that have not shaken hands yet, by where they come from: that tells one from the other. */
  const shaking = new Map<string, Socket>();
  const lines = createBucket(CERTIFICATE_LINES);
  /** They listen to nothing: connections are handed to them, and they hand on those that shook hands. */
  const servers = new WeakMap<TlsTerms, Server>();

  function refuseCertificate({ remoteAddress: from }: TLSSocket, why: string): void {
    refused("client_certificate");
    const level = lines.take(clock.monotonic()) === 0 ? "warn" : "debug";
    log[level]({ from, why }, "client certificate rejected");
  }

  function serverOf(tls: TlsTerms): Server {
    const known = servers.get(tls);
    if (known !== undefined) return known;
    const server = createServer(tls.options);
    servers.set(tls, server);
    server.on("secureConnection", (socket: TLSSocket) => {
      shaking.delete(originOf(socket));
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
        refused("handshake");
        log.debug({ from: socket.remoteAddress, why: error.message }, "TLS handshake failed");
      }
      if (error.code === "ERR_SSL_HTTP_REQUEST") shaking.get(originOf(socket))?.end(PLAIN_HTTP_ANSWER);
      socket.destroy();
    });
    return server;
  }

  return {
    take(socket, tls) {
      const origin = originOf(socket);
      shaking.set(origin, socket);
      socket.once("close", () => shaking.delete(origin));
      serverOf(tls).emit("connection", socket);
    },
    clear() {
      for (const socket of shaking.values()) socket.destroy();
    },
  };
}

const originOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
