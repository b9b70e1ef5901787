import { once } from "node:events";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { onTestFinished } from "vitest";
import { type CertificateAuthority, createAuthority, type Identity } from "./certificate-authority.ts";

/** Certificates of a server and of those who come to it. */
export interface TestCertificates {
  readonly authority: CertificateAuthority;
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

let cachedCertificates: TestCertificates | null = null;

/** The same for all tests: they take a tenth of a second to make. */
export function testCertificates(): TestCertificates {
  if (cachedCertificates !== null) return cachedCertificates;
  const authority = createAuthority("ours");
  cachedCertificates = {
    authority,
    server: authority.issue("DNS:localhost,IP:127.0.0.1"),
    renewed: authority.issue("DNS:localhost,IP:127.0.0.1"),
    prometheus: authority.issue("DNS:prometheus.test,URI:spiffe://test/prometheus,IP:2001:db8::1", "clientAuth"),
    stranger: authority.issue("DNS:stranger.test", "clientAuth"),
    forged: createAuthority("theirs").issue("DNS:prometheus.test", "clientAuth"),
  };
  return cachedCertificates;
}

/** Files of a server with these further keys of `tls_server_config`. */
export const serverFiles = (keys = "") => ({
  "web.yml": `tls_server_config: { cert_file: web.crt, key_file: web.key${keys === "" ? "" : `, ${keys}`} }`,
  "web.crt": testCertificates().server.cert,
  "web.key": testCertificates().server.key,
  "clients.crt": testCertificates().authority.cert,
});

/** What a client trusts, and shows. */
export const clientOptions = (identity: Identity | null = null, more: object = {}) => ({
  ca: testCertificates().authority.cert,
  ...identity,
  ...more,
});

/** Shakes hands by TLS alone. Rejects where the server refuses. */
export async function tlsHandshake(url: string, options: ConnectionOptions): Promise<TLSSocket> {
  const { port } = new URL(url);
  const socket = connect({ host: "127.0.0.1", port: Number(port), ...clientOptions(), ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}
