import { z } from "zod";
import type { DurationMs } from "../../base/duration.ts";
import {
  booleanFlag,
  filePath,
  hasExactlyOne,
  list,
  notBoth,
  oneOf,
  RUN_ALWAYS,
  rejectValue,
  section,
  text,
  valueKinds,
  wholeNumber,
} from "./value-types.ts";

/** OpenSSL's names of TLS versions by the names in Prometheus' web configuration, oldest first. */
export const TLS_VERSIONS = { TLS10: "TLSv1", TLS11: "TLSv1.1", TLS12: "TLSv1.2", TLS13: "TLSv1.3" } as const;

/** Cipher suites of TLS 1.3 by Go's names, which OpenSSL uses as well. As in Go, they are always all enabled. */
export const TLS13_SUITES = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
] as const;

/**
 * OpenSSL's names of the cipher suites up to TLS 1.2 that Go considers secure, by Go's names and in Go's order of
 * preference.
 */
export const TLS12_SUITES = {
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: "ECDHE-ECDSA-AES128-GCM-SHA256",
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: "ECDHE-RSA-AES128-GCM-SHA256",
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: "ECDHE-ECDSA-AES256-GCM-SHA384",
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: "ECDHE-RSA-AES256-GCM-SHA384",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: "ECDHE-ECDSA-AES128-SHA",
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: "ECDHE-RSA-AES128-SHA",
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: "ECDHE-ECDSA-AES256-SHA",
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: "ECDHE-RSA-AES256-SHA",
} as const;

/** OpenSSL's names of elliptic curves, by Go's names. */
export const CURVES = { CurveP256: "P-256", CurveP384: "P-384", CurveP521: "P-521", X25519: "X25519" } as const;

/**
 * Types of client authentication, by Go's names. `RequireClientCert` is an older name of `RequireAnyClientCert` that
 * Prometheus still accepts.
 */
const CLIENT_AUTH_TYPES = [
  "NoClientCert",
  "RequestClientCert",
  "RequireAnyClientCert",
  "RequireClientCert",
  "VerifyClientCertIfGiven",
  "RequireAndVerifyClientCert",
] as const;

const SANS_MAX = 1_000;
const USERS_MAX = 1_000;

const keysOf = <Names extends Readonly<Record<string, string>>>(names: Names) =>
  Object.keys(names) as (keyof Names & string)[];

const versions = keysOf(TLS_VERSIONS);
const suites = [...TLS13_SUITES, ...keysOf(TLS12_SUITES)];
const curves = keysOf(CURVES);

/** Types that require a certificate from every client. */
const CERTIFICATE_REQUIRED_TYPES: readonly string[] = [
  "RequireAnyClientCert",
  "RequireClientCert",
  "RequireAndVerifyClientCert",
];

/** An optional file. An empty path counts as absent, as in Go programs. */
const optionalFile = () =>
  filePath().register(valueKinds, { name: "file", check: "file", mayBeBlank: true }).exactOptional();

const certificate = (noun: string) =>
  text(`${noun} in PEM`, { name: "PEM", mayBeBlank: true }, /-----BEGIN CERTIFICATE-----/);

/** A check that exactly one of two keys is given if TLS is enabled. */
const neededForTls = (one: string, other: string) =>
  z.refine<object>((value) => !isTls(value) || hasExactlyOne(value, one, other), {
    ...RUN_ALWAYS,
    error: `must have either ${one} or ${other}`,
  });

const PRIVATE_KEY = { name: "PEM", secret: "the key", mayBeBlank: true };

const tlsServerConfig = section({
  cert: certificate("a certificate").exactOptional().describe("Certificate, in PEM. Either this or `cert_file`."),
  key: text("a private key in PEM", PRIVATE_KEY, /-----BEGIN [A-Z ]*PRIVATE KEY-----/)
    .exactOptional()
    .describe("Key of the certificate, in PEM. Either this or `key_file`."),
  client_ca: certificate("certificates of authorities")
    .exactOptional()
    .describe(
      "Certificates of the authorities that sign client certificates, in PEM. Either this or `client_ca_file`.",
    ),
  cert_file: optionalFile().describe("PEM file of the certificate chain. Either this or `cert`."),
  key_file: optionalFile().describe("PEM file of the key of the certificate. Either this or `key`."),
  client_auth_type: oneOf(CLIENT_AUTH_TYPES)
    .register(valueKinds, { name: CLIENT_AUTH_TYPES.join(", "), mayBeBlank: true })
    .exactOptional()
    .describe(
      "Type of client authentication, named as in Go. Defaults to `NoClientCert`. Only `RequireAndVerifyClientCert` requires a certificate signed by the authorities; `RequireClientCert` is the same as `RequireAnyClientCert`.",
    ),
  client_ca_file: optionalFile().describe(
    "PEM file of the authorities that sign client certificates. Either this or `client_ca`.",
  ),
  client_allowed_sans: list(text("a subject alternative name"), "names", SANS_MAX)
    .min(1, "must have at least one name, or be left out to allow every name")
    .exactOptional()
    .describe(
      "Allowed subject alternative names (DNS, IP, email or URI) of client certificates, compared exactly. Can be set only if `client_auth_type` requires a certificate.",
    ),
  min_version: oneOf(versions).default("TLS12").describe("Minimum TLS version."),
  max_version: oneOf(versions).default("TLS13").describe("Maximum TLS version."),
  cipher_suites: list(oneOf(suites), "cipher suites", suites.length)
    .default([])
    .describe(
      "Cipher suites for TLS 1.2 and earlier, named as in Go. If empty, all suites that Go considers secure are allowed. TLS 1.3 always uses its own.",
    ),
  prefer_server_cipher_suites: booleanFlag()
    .default(true)
    .describe("Whether to prefer the server's order of cipher suites."),
  curve_preferences: list(oneOf(curves), "curves", curves.length)
    .default([])
    .describe("Elliptic curves, in order of preference. If empty, OpenSSL's default applies."),
})
  .check(neededForTls("cert", "cert_file"), neededForTls("key", "key_file"), notBoth("client_ca", "client_ca_file"))
  .superRefine((tls, context) => {
    const reject = (key: string, expected: string) => rejectValue(context, tls, expected, [key]);
    if (versions.indexOf(tls.max_version) < versions.indexOf(tls.min_version)) {
      reject("max_version", `must not be older than min_version, which is ${tls.min_version}`);
    }
    const type = tls.client_auth_type ?? "NoClientCert";
    const hasAuthorities = tls.client_ca !== undefined || tls.client_ca_file !== undefined;
    if (hasAuthorities && type === "NoClientCert") {
      reject("client_auth_type", "must request a certificate if there are certificate authorities");
    }
    if (tls.client_allowed_sans !== undefined && !CERTIFICATE_REQUIRED_TYPES.includes(type)) {
      const expected = "must be RequireAndVerifyClientCert or RequireAnyClientCert if client_allowed_sans is set";
      reject("client_auth_type", `${expected}, because a client without a certificate has no name to compare`);
    }
  })
  .transform((tls) => {
    const { client_auth_type = "NoClientCert", ...others } = tls;
    return isTls(tls) ? { ...others, client_auth_type } : undefined;
  });

/** Returns whether a section enables TLS. As in exporter-toolkit, versions and cipher suites alone don't. */
export function isTls(section: object): boolean {
  const enabling = ["cert", "cert_file", "key", "key_file", "client_ca", "client_ca_file", "client_auth_type"];
  return enabling.some((key) => key in section);
}

/** The value of a header, which is not sent if it is empty. */
function headerText() {
  const expected = "must be one line of ASCII characters";
  return z
    .string({ error: expected })
    .regex(/^[\x20-\x7e]*$/, expected)
    .register(valueKinds, { name: "string" })
    .exactOptional();
}

const headers = section({
  "Content-Security-Policy": headerText().describe(
    "Replaces the default, except on the status page, which has its own policy.",
  ),
  "X-Frame-Options": oneOf(["deny", "sameorigin"]).exactOptional().describe("Replaces the default, DENY."),
  "X-Content-Type-Options": oneOf(["nosniff"]).exactOptional().describe("Always sent."),
  "X-XSS-Protection": headerText().describe("Sent unchanged; current browsers ignore it."),
  "Strict-Transport-Security": headerText().describe(
    "Sent unchanged. Browsers then use only https for this host, including its other ports.",
  ),
})
  .prefault({})
  .describe("Additional response headers. Only the headers below can be set.");

const httpServerConfig = section({
  http2: booleanFlag()
    .default(true)
    .describe("Accepted for compatibility, without effect: the server speaks only HTTP/1.1."),
  headers,
})
  .prefault({})
  .describe("HTTP settings.");

const INTERVAL_EXPECTED = "must be a Go duration, such as 100ms or 1.5s, or 0 for no limit";

/** Nanoseconds of each unit of Go's `time.ParseDuration`, which accepts both characters for micro. */
const GO_UNITS = new Map(
  Object.entries({ ns: 1, us: 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, ms: 1e6, s: 1e9, m: 6e10, h: 3.6e12 }),
);
const GO_DURATION = /^\+?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$/;
/** Go stores nanoseconds in 64 bits, which is about 292 years. */
const GO_NANOSECONDS_MAX = 2 ** 63;

/** Parses a Go duration, such as `1.5s`. Returns null if it is invalid. */
function parseGoDuration(written: string): DurationMs | null {
  if (!GO_DURATION.test(written)) return null;
  const terms = [...written.matchAll(/([\d.]+)(\D+)/g)];
  const nanoseconds = terms.reduce((sum, [, count, unit]) => sum + Number(count) * GO_UNITS.get(unit!)!, 0);
  return nanoseconds < GO_NANOSECONDS_MAX ? nanoseconds / 1e6 : null;
}

const interval = z
  .union([z.string(), z.literal(0)], { error: INTERVAL_EXPECTED })
  .register(valueKinds, { name: "Go duration, or 0" })
  .transform((value, context): DurationMs => {
    return parseGoDuration(String(value)) ?? rejectValue(context, value, INTERVAL_EXPECTED);
  })
  .prefault(0);

const rateLimit = section({
  interval: interval.describe("Time after which one more request is allowed; `0` means no limit."),
  burst: wholeNumber(0, 1_000_000)
    .default(0)
    .describe("Largest number of requests at once. If `interval` is not `0`, a burst of `0` rejects every request."),
})
  .exactOptional()
  .describe(
    "Limit on the requests of all clients together, in addition to the built-in limit on each client. It does not apply to health routes.",
  );

const bcryptHash = text(
  "a bcrypt hash, $2a$, $2b$ or $2y$, of cost 4 to 18; a higher cost would take longer than a scraper waits",
  { name: "bcrypt hash", secret: "the hash" },
  /^\$2[aby]\$(?:0[4-9]|1[0-8])\$[./A-Za-z0-9]{53}$/,
);
const USER_EXPECTED = "a user name, without colons or control characters";

const users = z
  .record(z.string().regex(/^[^:\p{Cc}]+$/u), bcryptHash, {
    error: (issue) =>
      issue.code === "invalid_key" ? `must be ${USER_EXPECTED}` : "must be a mapping of user names to bcrypt hashes",
  })
  .refine((all) => Object.keys(all).length <= USERS_MAX, `must be at most ${USERS_MAX} users`)
  .register(valueKinds, { name: `mapping of at most ${USERS_MAX} user names to bcrypt hashes`, range: "cost 4 to 18" })
  .default({})
  .describe(
    "Users of basic auth. If empty, no password is required. `/-/healthy` and `/-/ready` never require one. Other routes also accept an operator's token instead of a password.",
  );

/**
 * The web configuration file of Prometheus' exporter-toolkit. The reference and the JSON Schema are generated from it.
 */
export const webSchema = section({
  tls_server_config: tlsServerConfig.exactOptional().describe("TLS settings. By default plain HTTP is served."),
  http_server_config: httpServerConfig,
  basic_auth_users: users,
  rate_limit: rateLimit,
});

/** A web configuration. Keys as in the file; durations in milliseconds. */
export type WebConfig = z.output<typeof webSchema>;
