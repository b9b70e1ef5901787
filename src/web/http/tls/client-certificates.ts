import type { X509Certificate } from "node:crypto";
import { isIP, SocketAddress } from "node:net";
import type { TlsConfig, TlsSettings } from "./tls-settings.ts";

/** Kinds of names that identify a client, as Node spells them. The exporter-toolkit compares the same ones. */
const NAME_KINDS: ReadonlySet<string> = new Set(["DNS", "email", "IP Address", "URI"]);

/** One name of the list: its kind, and the name, as a JSON string if it contains a delimiter. */
const NAME_ENTRY = /(?:^|, )([\w ]+):("(?:[^"\\]|\\.)*"|[^,"]*)/y;

/**
 * Creates the checks of client certificates that Node lacks: the types between `NoClientCert` and
 * `RequireAndVerifyClientCert`, and names.
 */
export function createClientCheck({
  client_auth_type: type,
  client_allowed_sans: allowed,
}: TlsConfig): TlsSettings["clientProblem"] {
  const allowedNames = allowed === undefined ? null : new Set(allowed.map(canonicalName));
  return (socket) => {
    if (type === "NoClientCert" || type === "RequestClientCert") return null;
    const shown = socket.getPeerX509Certificate();
    if (shown === undefined) return type === "VerifyClientCertIfGiven" ? null : "no client certificate";
    const mustVerify = type === "VerifyClientCertIfGiven" || type === "RequireAndVerifyClientCert";
    if (mustVerify && !socket.authorized) return `its certificate is not verified: ${socket.authorizationError}`;
    if (allowedNames === null || alternativeNames(shown).some((name) => allowedNames.has(name))) return null;
    return "none of the certificate's subject alternative names is in client_allowed_sans";
  };
}

/** Returns the subject alternative names of a certificate, IP addresses in their shortest form. */
export function alternativeNames({ subjectAltName = "" }: Pick<X509Certificate, "subjectAltName">): readonly string[] {
  const names: string[] = [];
  NAME_ENTRY.lastIndex = 0;
  while (NAME_ENTRY.lastIndex < subjectAltName.length) {
    const entry = NAME_ENTRY.exec(subjectAltName);
    // A list that is not fully understood identifies no client.
    if (entry === null) return [];
    const [, kind = "", written = ""] = entry;
    if (NAME_KINDS.has(kind)) names.push(canonicalName(unquote(written)));
  }
  return names;
}

/** Returns an IP address in its shortest form, and other names unchanged. */
function canonicalName(name: string): string {
  const version = isIP(name);
  if (version === 0) return name;
  return new SocketAddress({ address: name, family: version === 6 ? "ipv6" : "ipv4" }).address;
}

const unquote = (written: string): string => (written.startsWith('"') ? String(JSON.parse(written)) : written);
