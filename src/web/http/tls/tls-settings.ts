import { constants, createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext, type TLSSocket, type TlsOptions } from "node:tls";
import { caCertificateProblem } from "../../../api-client/certificates.ts";
import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import { fail, ok, type Result } from "../../../base/result.ts";
import { CURVES, TLS_VERSIONS, TLS12_SUITES, TLS13_SUITES } from "../../../config/schema/tls-names.ts";
import type { WebConfig } from "../../../config/schema/web-file.ts";
import type { ReadFile } from "../../../config/web-file.ts";
import type { EpochMs } from "../../../model/time.ts";
import { alternativeNames, canonicalName } from "./subject-alt-names.ts";

/** The section `tls_server_config`. */
export type TlsConfig = NonNullable<WebConfig["tls_server_config"]>;

/** TLS as it is offered to whoever connects now. */
export interface TlsSettings {
  /** What a server of Node takes. They are known to be good. */
  readonly options: TlsOptions;
  /** Why a client that shook hands is turned away all the same; null: it is let in. */
  refusal(socket: TLSSocket): string | null;
  readonly certificateEndsAt: EpochMs;
}

/** A handshake is a few packets: who needs longer holds a place that others wait for. */
const HANDSHAKE_MS_MAX: DurationMs = 10 * SECOND_MS;
/** Sessions are taken up again by those who began them here, and not with another server of the same machine. */
const SESSION_ID_CONTEXT = "proxywarden";
/** What OpenSSL calls secure leaves out all of TLS 1.0 and 1.1: who asks for them by name gets them. */
const LEGACY_SECURITY_LEVEL = "@SECLEVEL=0";

/** Makes TLS of a configuration. The error names the key that is to blame, and shows no secret. */
export function loadTlsSettings(config: TlsConfig, readFile: ReadFile): Result<TlsSettings, string> {
  const chain = readPem(config, "cert", readFile);
  if (!chain.ok) return chain;
  const key = readPem(config, "key", readFile);
  if (!key.ok) return key;
  const ca = readPem(config, "client_ca", readFile);
  if (!ca.ok) return ca;
  const certificate = parseCertificate(chain.value.text, key.value.text);
  if (!certificate.ok) {
    const { which, why } = certificate.error;
    return fail(`${(which === "cert" ? chain : key).value.name} ${why}`);
  }
  const untrusted = ca.value.text === "" ? null : caCertificateProblem(ca.value.text);
  if (untrusted !== null) return fail(`${ca.value.name} ${untrusted}`);
  const options: TlsOptions = {
    ...tlsOptions(config),
    cert: chain.value.text,
    key: key.value.text,
    ...(ca.value.text === "" ? {} : { ca: ca.value.text }),
  };
  try {
    createSecureContext(options);
    const certificateEndsAt = certificate.value.validToDate.getTime();
    return ok({ options, refusal: createClientCheck(config), certificateEndsAt });
  } catch (error) {
    // What OpenSSL says of a certificate, a key or a list of ciphers holds none of their content.
    return fail(`tls_server_config: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function tlsOptions(config: TlsConfig): TlsOptions {
  const chosen = new Set<string>(config.cipher_suites);
  const older = Object.entries(TLS12_SUITES).filter(([name]) => chosen.size === 0 || chosen.has(name));
  const inOrder = chosen.size === 0 ? older.map(([name]) => name) : config.cipher_suites;
  const names: Readonly<Record<string, string>> = TLS12_SUITES;
  const suites = inOrder.flatMap((name) => names[name] ?? []);
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
    // As in Go; a handshake within a connection is nothing but work for us.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}

/** OpenSSL lets in whom it can verify, or everybody: what lies between, and the names, are looked at here. */
function createClientCheck({
  client_auth_type: type,
  client_allowed_sans: allowed,
}: TlsConfig): TlsSettings["refusal"] {
  const isWanted = allowed === undefined ? null : new Set(allowed.map(canonicalName));
  return (socket) => {
    if (type === "NoClientCert" || type === "RequestClientCert") return null;
    const shown = socket.getPeerX509Certificate();
    if (shown === undefined) return type === "VerifyClientCertIfGiven" ? null : "no client certificate";
    const isVerified = type === "VerifyClientCertIfGiven" || type === "RequireAndVerifyClientCert";
    if (isVerified && !socket.authorized) return `its certificate is not verified: ${socket.authorizationError}`;
    if (isWanted === null || alternativeNames(shown).some((name) => isWanted.has(name))) return null;
    return "none of the certificate's subject alternative names is in client_allowed_sans";
  };
}

/** A text in PEM, and where it is from, for messages. Empty: neither key is given. */
interface PemText {
  readonly name: string;
  readonly text: string;
}

function readPem(config: TlsConfig, key: "cert" | "key" | "client_ca", readFile: ReadFile): Result<PemText, string> {
  const path = config[`${key}_file`];
  if (path === undefined) return ok({ name: `tls_server_config.${key}`, text: config[key] ?? "" });
  const name = `tls_server_config.${key}_file: ${path}`;
  const read = readFile(path);
  return read.ok ? ok({ name, text: read.value }) : fail(`tls_server_config.${key}_file: ${read.error}`);
}

type PemError = { readonly which: "cert" | "key"; readonly why: string };

/** The certificate that is shown, the first of its chain, once it and the key are known to be readable and to fit. */
function parseCertificate(chain: string, pem: string): Result<X509Certificate, PemError> {
  const broken = caCertificateProblem(chain);
  if (broken !== null) return fail({ which: "cert", why: broken });
  const certificate = new X509Certificate(chain);
  const key = parsePrivateKey(pem);
  if (key === null) {
    return fail({
      which: "key",
      why: "must contain an unencrypted private key in PEM format",
    });
  }
  return certificate.checkPrivateKey(key)
    ? ok(certificate)
    : fail({ which: "key", why: "does not match the certificate" });
}

function parsePrivateKey(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    return null;
  }
}
