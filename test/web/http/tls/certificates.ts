import { once } from "node:events";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { onTestFinished } from "vitest";
import { type Authority, type Identity, newAuthority } from "./certificate-authority.ts";

/** Certificates of a server and of those who come to it. */
export interface Credentials {
  readonly authority: Authority;
  readonly server: Identity;
  /** Of the same server, later. */
  readonly renewed: Identity;
  /** A client that has three names. */
  readonly prometheus: Identity;
  /** A client of the same authority. */
  readonly stranger: Identity;
  /** A client with one of the first one's names, by another authority. */
  readonly forged: Identity;
}

let made: Credentials | null = null;

/** The same for all tests: they take a tenth of a second to make. */
export function credentials(): Credentials {
  if (made !== null) return made;
  const authority = newAuthority("ours");
  made = {
    authority,
    server: authority.issue("DNS:localhost,IP:127.0.0.1"),
    renewed: authority.issue("DNS:localhost,IP:127.0.0.1"),
    prometheus: authority.issue("DNS:prometheus.test,URI:spiffe://test/prometheus,IP:2001:db8::1", "clientAuth"),
    stranger: authority.issue("DNS:stranger.test", "clientAuth"),
    forged: newAuthority("theirs").issue("DNS:prometheus.test", "clientAuth"),
  };
  return made;
}

/** Files of a server with these further keys of `tls_server_config`. */
export const serverFiles = (keys = "") => ({
  "web.yml": `tls_server_config: { cert_file: web.crt, key_file: web.key${keys === "" ? "" : `, ${keys}`} }`,
  "web.crt": credentials().server.cert,
  "web.key": credentials().server.key,
  "clients.crt": credentials().authority.cert,
});

/** What a client trusts, and shows. */
export const trusting = (identity: Identity | null = null, more: object = {}) => ({
  ca: credentials().authority.cert,
  ...identity,
  ...more,
});

/** Shakes hands by TLS alone. Rejects where the server refuses. */
export async function shakeHands(url: string, options: ConnectionOptions): Promise<TLSSocket> {
  const { port } = new URL(url);
  const socket = connect({ host: "127.0.0.1", port: Number(port), ...trusting(), ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}
