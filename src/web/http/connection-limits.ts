import type { Server } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { SECOND_MS } from "../../base/duration.ts";
import { clientKey, createPerClient } from "./client-address.ts";
import { createTokenBucket } from "./request-rates.ts";
import { rawResponse } from "./response.ts";
import type { WebContext } from "./route.ts";
import { NO_CERTIFICATE, type TlsSettings } from "./tls/tls-settings.ts";

/** Maximum number of connections. Each may keep an exposition in memory. */
const CONNECTIONS_MAX = 256;
/** Maximum number of connections of one client. A browser opens six, Prometheus one or two. */
const CLIENT_CONNECTIONS_MAX = 64;
/** Rate limit of one client's new connections. A TLS handshake takes one or two milliseconds. */
const CLIENT_CONNECT_RATE = { intervalMs: SECOND_MS / 50, burst: 500 };
/** Rate limit of log lines about rejected client certificates. */
const CERTIFICATE_LOG_RATE = { intervalMs: 10 * SECOND_MS, burst: 10 };

/** Tells a client that the port requires TLS. */
const PLAIN_HTTP_RESPONSE = rawResponse(400, "plain HTTP request sent to an HTTPS server: use https://");

interface OpenConnection {
  readonly socket: Socket;
  readonly client: string;
  /** Whether it is ready for HTTP, false during the TLS handshake. */
  isReady: boolean;
}

/** The connections of a server. */
export type OpenConnections = ReturnType<typeof limitConnections>;

/**
 * Closes the connections to a server that are over the limits. On an HTTPS server it also keeps the certificate up to
 * date, checks client certificates, and counts failed handshakes.
 */
export function limitConnections(server: Server | HttpsServer, context: WebContext) {
  const { clock, isTrustedProxy, countRefusal } = context;
  const open = new Map<string, OpenConnection>();
  const connectBucketOf = createPerClient(() => createTokenBucket(CLIENT_CONNECT_RATE));

  function isWithinLimits(client: string, address: string | undefined): boolean {
    // A trusted proxy connects for many clients.
    if (isTrustedProxy(address)) return open.size < CONNECTIONS_MAX;
    if (connectBucketOf(client)(clock.monotonic()) > 0 || open.size >= CONNECTIONS_MAX) return false;
    return [...open.values()].filter((other) => other.client === client).length < CLIENT_CONNECTIONS_MAX;
  }

  const isTls = "setSecureContext" in server;
  if (isTls) followTlsSettings(server, open, context);
  const listeners = server.listeners("connection");
  server.removeAllListeners("connection").on("connection", (socket: Socket) => {
    // Without a listener an error of a rejected connection would end the process.
    socket.on("error", () => undefined);
    const client = clientKey(socket.remoteAddress);
    if (!isWithinLimits(client, socket.remoteAddress)) {
      countRefusal("connections");
      socket.destroy();
      return;
    }
    const key = connectionKey(socket);
    open.set(key, { socket, client, isReady: !isTls });
    socket.once("close", () => {
      // The client may have reused the port of a connection that it has reset.
      if (open.get(key)?.socket === socket) open.delete(key);
    });
    for (const listener of listeners) listener.call(server, socket);
  });

  const close = (connections: readonly OpenConnection[]) => {
    for (const { socket } of connections) socket.destroy();
  };
  return {
    /** Closes the connections that are still in the TLS handshake. */
    closeHandshakes: () => close([...open.values()].filter(({ isReady }) => !isReady)),
    closeAll: () => close([...open.values()]),
  };
}

function followTlsSettings(
  server: HttpsServer,
  open: ReadonlyMap<string, OpenConnection>,
  { webSettings, clock, log, countRefusal }: WebContext,
): void {
  const takeLogToken = createTokenBucket(CERTIFICATE_LOG_RATE);
  let applied = webSettings.current().tls;

  function refuseCertificate(socket: TLSSocket, reason: string): void {
    countRefusal("client_certificate");
    const level = takeLogToken(clock.monotonic()) === 0 ? "warn" : "debug";
    log[level]({ from: addressOf(socket), reason }, "client certificate rejected");
    socket.destroy();
  }

  server.prependListener("connection", () => {
    const { tls } = webSettings.current();
    if (tls !== null && tls !== applied) applyTls(server, tls);
    applied = tls;
  });
  server.prependListener("secureConnection", (socket: TLSSocket) => {
    const connection = open.get(connectionKey(socket));
    if (connection !== undefined) connection.isReady = true;
    const problem = webSettings.current().tls?.clientProblem(socket) ?? null;
    if (problem !== null) refuseCertificate(socket, problem);
  });
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    if (error.code === "ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE") {
      refuseCertificate(socket, NO_CERTIFICATE);
      return;
    }
    // Node reports a certificate that it can't verify as if the client had closed the connection.
    if (socket.authorizationError) {
      refuseCertificate(socket, `the certificate could not be verified: ${socket.authorizationError}`);
      return;
    }
    countRefusal("handshake");
    log.debug({ from: addressOf(socket), reason: error.message }, "TLS handshake failed");
    if (error.code === "ERR_SSL_HTTP_REQUEST") open.get(connectionKey(socket))?.socket.end(PLAIN_HTTP_RESPONSE);
    socket.destroy();
  });
}

function applyTls(server: HttpsServer, { options }: TlsSettings): void {
  server.setSecureContext(options);
  // Node reads these two options for each connection, but setSecureContext does not change them.
  Object.assign(server, { requestCert: options.requestCert, rejectUnauthorized: options.rejectUnauthorized });
}

/** Returns the address of a client. After some failed handshakes, only the TCP socket below the TLS socket has it. */
const addressOf = (socket: TLSSocket & { readonly _parent?: Socket }): string | undefined =>
  socket.remoteAddress ?? socket._parent?.remoteAddress;

/** Returns the key of a connection, which is the same for its TCP socket and its TLS socket. */
const connectionKey = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
