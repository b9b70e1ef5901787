import { constants, createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext, type TLSSocket, type TlsOptions } from "node:tls";
import { caCertificateProblem } from "../../../api-client/certificates.ts";
import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import { fail, ok, type Result } from "../../../base/result.ts";
import { CURVES, TLS_VERSIONS, TLS12_SUITES, TLS13_SUITES } from "../../../config/schema/tls-names.ts";
import type { WebConfig } from "../../../config/schema/web-file.ts";
import type { ReadFile } from "../../../config/web-file.ts";
import type { EpochMs } from "../../../model/time.ts";
import { createClientCheck } from "./client-certificates.ts";

/** The section `tls_server_config`. */
export type TlsConfig = NonNullable<WebConfig["tls_server_config"]>;

/** TLS settings of new connections. */
export interface TlsSettings {
  /** Valid options of a TLS server of Node. */
  readonly options: TlsOptions;
  /** Why a client is rejected after the handshake; null: it is accepted. */
  clientProblem(socket: TLSSocket): string | null;
  readonly certificateEndsAt: EpochMs;
}

/** A handshake takes a few packets; a slow client holds a connection that others may need. */
const HANDSHAKE_MS_MAX: DurationMs = 10 * SECOND_MS;
/** Keeps clients from resuming a session of another server on the same machine. */
const SESSION_ID_CONTEXT = "proxywarden";
/** OpenSSL's default security level excludes TLS 1.0 and 1.1, which a configuration may ask for. */
const LEGACY_SECURITY_LEVEL = "@SECLEVEL=0";

/** Loads the certificate and key of a configuration. The error names the key of the configuration, and contains no secret. */
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
    return ok({ options, clientProblem: createClientCheck(config), certificateEndsAt });
  } catch (error) {
    // Messages of OpenSSL contain nothing of a certificate or key.
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
    // As in Go: renegotiation only costs CPU time.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}

/** A text in PEM and the name of its source for messages. Empty: neither key is given. */
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

/** Returns the first certificate of a chain, after checking that it and the key can be read and match. */
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
