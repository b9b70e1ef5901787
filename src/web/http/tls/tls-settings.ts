import { constants, createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { isIP, SocketAddress } from "node:net";
import { createSecureContext, type TLSSocket, type TlsOptions } from "node:tls";
import { caCertificateProblem } from "../../../api-client/certificates.ts";
import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import { errorMessage, fail, ok, type Result } from "../../../base/result.ts";
import type { ReadFile } from "../../../config/checks.ts";
import type { KeyProblem } from "../../../config/diagnostics/problem.ts";
import { CURVES, TLS_VERSIONS, TLS12_SUITES, TLS13_SUITES, type WebConfig } from "../../../config/schema/web-file.ts";
import type { EpochMs } from "../../../model/time.ts";

/** The section `tls_server_config`. */
type TlsConfig = NonNullable<WebConfig["tls_server_config"]>;

/** TLS settings of new connections. */
export interface TlsSettings {
  /** Valid options of a TLS server of Node. */
  readonly options: TlsOptions;
  /** Why a client is rejected after the handshake, or null if it is accepted. */
  clientProblem(socket: TLSSocket): string | null;
  readonly certificateEndsAt: EpochMs;
}

/** A handshake takes a few packets, and a slow client holds a connection that others may need. */
const HANDSHAKE_MS_MAX: DurationMs = 10 * SECOND_MS;
/** Keeps clients from resuming the session of another server on the same host. */
const SESSION_ID_CONTEXT = "proxywarden";
/** OpenSSL's default security level excludes TLS 1.0 and 1.1, which a configuration may enable. */
const LEGACY_SECURITY_LEVEL = "@SECLEVEL=0";

/**
 * Loads the certificate, its key and the CA certificates for clients. The error is the first problem, and contains no
 * secret.
 */
export function loadTlsSettings(config: TlsConfig, readFile: ReadFile): Result<TlsSettings, KeyProblem> {
  const cert = readPem(config, "cert", readFile);
  if (!cert.ok) return cert;
  const key = readPem(config, "key", readFile);
  if (!key.ok) return key;
  const ca = readPem(config, "client_ca", readFile);
  if (!ca.ok) return ca;
  const problem = pemProblem(cert.value, key.value, ca.value);
  if (problem !== null) return fail(problem);
  const options: TlsOptions = {
    ...tlsOptions(config),
    cert: cert.value.text,
    key: key.value.text,
    ...(ca.value.text === "" ? {} : { ca: ca.value.text }),
  };
  try {
    createSecureContext(options);
  } catch (error) {
    // Messages of OpenSSL contain nothing of a certificate or key.
    return fail({ key: "tls_server_config", message: errorMessage(error) });
  }
  const certificateEndsAt = new X509Certificate(cert.value.text).validToDate.getTime();
  return ok({ options, clientProblem: createClientCheck(config), certificateEndsAt });
}

function tlsOptions(config: TlsConfig): TlsOptions {
  const names: Readonly<Record<string, string>> = TLS12_SUITES;
  const chosen: readonly string[] = config.cipher_suites.length === 0 ? Object.keys(names) : config.cipher_suites;
  const suites = chosen.flatMap((name) => names[name] ?? []);
  const isLegacy = config.min_version === "TLS10" || config.min_version === "TLS11";
  const type = config.client_auth_type;
  return {
    minVersion: TLS_VERSIONS[config.min_version],
    maxVersion: TLS_VERSIONS[config.max_version],
    ciphers: [...TLS13_SUITES, ...suites, ...(isLegacy ? [LEGACY_SECURITY_LEVEL] : [])].join(":"),
    honorCipherOrder: config.prefer_server_cipher_suites,
    ecdhCurve: config.curve_preferences.map((name) => CURVES[name]).join(":") || "auto",
    requestCert: type !== "NoClientCert",
    rejectUnauthorized: type === "RequireAndVerifyClientCert",
    ALPNProtocols: ["http/1.1"],
    handshakeTimeout: HANDSHAKE_MS_MAX,
    sessionIdContext: SESSION_ID_CONTEXT,
    // Go disables renegotiation too. Clients could use it only to consume CPU time.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}

/** A PEM text, which is empty if not configured, and its source. */
interface PemText {
  readonly key: string;
  /** Path of its file, or null if it is in the configuration itself. */
  readonly path: string | null;
  readonly text: string;
}

function readPem(
  config: TlsConfig,
  name: "cert" | "key" | "client_ca",
  readFile: ReadFile,
): Result<PemText, KeyProblem> {
  const path = config[`${name}_file`];
  if (path === undefined) return ok({ key: `tls_server_config.${name}`, path: null, text: config[name] ?? "" });
  const key = `tls_server_config.${name}_file`;
  const read = readFile(path);
  return read.ok ? ok({ key, path, text: read.value }) : fail({ key, message: read.error });
}

/** Returns what is wrong with a certificate, its key or the CA certificates for clients, or null if nothing is wrong. */
function pemProblem(cert: PemText, key: PemText, ca: PemText): KeyProblem | null {
  const problemOf = ({ key: source, path }: PemText, problem: string) => ({
    key: source,
    message: path === null ? problem : `${path} ${problem}`,
  });
  const certProblem = caCertificateProblem(cert.text);
  if (certProblem !== null) return problemOf(cert, certProblem);
  const privateKey = parsePrivateKey(key.text);
  if (privateKey === null) return problemOf(key, "must contain an unencrypted private key in PEM format");
  if (!new X509Certificate(cert.text).checkPrivateKey(privateKey))
    return problemOf(key, "does not match the certificate");
  const caProblem = ca.text === "" ? null : caCertificateProblem(ca.text);
  return caProblem === null ? null : problemOf(ca, caProblem);
}

function parsePrivateKey(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    return null;
  }
}

/** Why a client without a certificate is rejected. */
export const NO_CERTIFICATE = "no client certificate";

/** Kinds of names that identify a client, as Node spells them. The exporter-toolkit compares the same ones. */
const NAME_KINDS: ReadonlySet<string> = new Set(["DNS", "email", "IP Address", "URI"]);

/** One name of the list: its kind, and the name, as a JSON string if it contains a delimiter. */
const NAME_ENTRY = /(?:^|, )([\w ]+):("(?:[^"\\]|\\.)*"|[^,"]*)/y;

/**
 * Creates the checks of client certificates that Node lacks: for the values of `client_auth_type` between `NoClientCert`
 * and `RequireAndVerifyClientCert`, and for `client_allowed_sans`.
 */
function createClientCheck({
  client_auth_type: type,
  client_allowed_sans: allowed,
}: TlsConfig): TlsSettings["clientProblem"] {
  const allowedNames = allowed === undefined ? null : new Set(allowed.map(canonicalName));
  return (socket) => {
    if (type === "NoClientCert" || type === "RequestClientCert") return null;
    const shown = socket.getPeerX509Certificate();
    if (shown === undefined) return type === "VerifyClientCertIfGiven" ? null : NO_CERTIFICATE;
    const mustVerify = type === "VerifyClientCertIfGiven" || type === "RequireAndVerifyClientCert";
    if (mustVerify && !socket.authorized) return `the certificate could not be verified: ${socket.authorizationError}`;
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
