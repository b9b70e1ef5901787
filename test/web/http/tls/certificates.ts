import { once } from "node:events";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { onTestFinished } from "vitest";
import { type CertificateAuthority, createAuthority, type Identity } from "./certificate-authority.ts";

/** Certificates of a server and its clients. */
export interface TestCertificates {
  readonly authority: CertificateAuthority;
  readonly server: Identity;
  /** The renewed certificate of the server. */
  readonly renewed: Identity;
  /** A client with three names. */
  readonly prometheus: Identity;
  /** A client of the same authority. */
  readonly otherClient: Identity;
  /** A client with a name of the first client, by another authority. */
  readonly forged: Identity;
}

let cachedCertificates: TestCertificates | null = null;

/** Shared by all tests, because creating them takes a tenth of a second. */
export function testCertificates(): TestCertificates {
  if (cachedCertificates !== null) return cachedCertificates;
  const authority = createAuthority("ours");
  cachedCertificates = {
    authority,
    server: authority.issue("DNS:localhost,IP:127.0.0.1"),
    renewed: authority.issue("DNS:localhost,IP:127.0.0.1"),
    prometheus: authority.issue("DNS:prometheus.test,URI:spiffe://test/prometheus,IP:2001:db8::1", "clientAuth"),
    otherClient: authority.issue("DNS:second.test", "clientAuth"),
    forged: createAuthority("theirs").issue("DNS:prometheus.test", "clientAuth"),
  };
  return cachedCertificates;
}

/** Returns the files of a server. `keys`: further keys of `tls_server_config`. */
export const serverFiles = (keys = "") => ({
  "web.yml": `tls_server_config: { cert_file: web.crt, key_file: web.key${keys === "" ? "" : `, ${keys}`} }`,
  "web.crt": testCertificates().server.cert,
  "web.key": testCertificates().server.key,
  "clients.crt": testCertificates().authority.cert,
});

/** Returns the TLS options of a client. */
export const clientOptions = (identity: Identity | null = null, more: object = {}) => ({
  ca: testCertificates().authority.cert,
  ...identity,
  ...more,
});

/** Does only the TLS handshake. Rejects if the server rejects it. */
export async function tlsHandshake(url: string, options: ConnectionOptions): Promise<TLSSocket> {
  const { port } = new URL(url);
  const socket = connect({ host: "127.0.0.1", port: Number(port), ...clientOptions(), ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}
