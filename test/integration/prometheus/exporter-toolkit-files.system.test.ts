import { hashSync } from "bcryptjs";
import { beforeAll, describe, expect, test } from "vitest";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { basic, sendHttpRequest, settingsIn, startServerWithFiles } from "../../web/http/secured-server.ts";
import { createAuthority, type Identity } from "../../web/http/tls/certificate-authority.ts";
import { requireProgram, startProcess } from "../process.ts";

/** The exporter-toolkit's verdict. If it is `too new`, Debian's promtool predates the key and only ours is tested. */
type Verdict = "good" | "bad" | "good, too new" | "bad, too new";

const PASSWORD = "dave123";
const hash = hashSync(PASSWORD, 4);
const PAIR = "cert_file: server.crt, key_file: server.key";
const GIVEN = `${PAIR}, client_auth_type: VerifyClientCertIfGiven`;

let ca: Identity;
let server: Identity;
let client: Identity;

beforeAll(() => {
  const authority = createAuthority("toolkit");
  ca = authority;
  server = authority.issue("DNS:localhost");
  client = authority.issue("DNS:test3", "clientAuth");
});

const files = (web: string): Readonly<Record<string, string>> => ({
  "web.yml": web,
  "server.crt": server.cert,
  "server.key": server.key,
  "client.crt": ca.cert,
});

function folderWith(web: string): TempFolder {
  const folder = createTempFolder();
  for (const [name, text] of Object.entries(files(web))) folder.write(name, text);
  return folder;
}

/** PEM as a YAML block. */
const block = (key: string, pem: string): string => `  ${key}: |\n${pem.replace(/^/gm, "    ").trimEnd()}\n`;

/** Files like those in the toolkit's `web/testdata`, by their names there, and the verdicts. */
const rows: readonly (readonly [name: string, verdict: Verdict, web: () => string])[] = [
  [
    "tls_config_noAuth.requireandverifyclientcert.good.yml",
    "good",
    () => `tls_server_config: { ${PAIR}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: client.crt }`,
  ],
  [
    "tls_config_noAuth.requireanyclientcert.good.yml",
    "good",
    () => `tls_server_config: { ${PAIR}, client_auth_type: RequireAnyClientCert }`,
  ],
  [
    "tls_config_noAuth.requireanyclientcertkeyinline.good.yml",
    "good, too new",
    () =>
      `tls_server_config:\n  cert_file: server.crt\n${block("key", server.key)}  client_auth_type: RequireAnyClientCert`,
  ],
  [
    "web_config_auth_clientCAs_invalid.bad.yml",
    "bad",
    () => `tls_server_config: { ${PAIR}, client_ca_file: somefile }`,
  ],
  [
    // Valid despite its name: the authorities of the system are used.
    "web_config_auth_clientCAs_missing.bad.yml",
    "good",
    () => `tls_server_config: { ${PAIR}, client_auth_type: RequireAndVerifyClientCert }`,
  ],
  [
    // Rejected only by the client: the file is valid for the server.
    "web_config_auth_client_san.bad.yaml",
    "good, too new",
    () =>
      `tls_server_config: { ${PAIR}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: client.crt, client_allowed_sans: [bad] }`,
  ],
  [
    "web_config_auth_client_san.good.yaml",
    "good, too new",
    () =>
      `tls_server_config: { ${PAIR}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: client.crt, client_allowed_sans: [one, test3, two] }`,
  ],
  [
    "web_config_auth_user_list_invalid.bad.yml",
    "bad",
    () => `tls_server_config: { ${PAIR} }\nbasic_auth_users: { john: doe }`,
  ],
  ["web_config_empty.yml", "good", () => ""],
  [
    "web_config_headers.good.yml",
    "good",
    () =>
      "http_server_config:\n  headers:\n    X-Frame-Options: deny\n    Strict-Transport-Security: max-age=31536000; includeSubDomains\n    X-Content-Type-Options: nosniff\n    X-XSS-Protection: 1\n    Content-Security-Policy: \"default-src 'self' *.test.example.net\"\n",
  ],
  [
    "web_config_headers_content_type_options.bad.yml",
    "bad",
    () => "http_server_config: { headers: { X-Content-Type-Options: sniff } }",
  ],
  ["web_config_headers_extra_header.bad.yml", "bad", () => "http_server_config: { headers: { Content-Type: foo } }"],
  [
    "web_config_headers_frame_options.bad.yml",
    "bad",
    () => "http_server_config: { headers: { X-Frame-Options: foo } }",
  ],
  ["web_config_junk.yml", "bad", () => "hWkNKCp3fvIx3jKnsaBI\nTuEjdwNS8A2vYdFbiKqr\n"],
  ["web_config_junk_key.yml", "bad", () => "tls_server_config: { cert_filse: server.crt }"],
  ["web_config_noAuth.bad.yml", "bad", () => `tls_server_config: { ${PAIR}, client_ca_file: /dev/null }`],
  [
    "web_config_noAuth.good.blocking.yml",
    "good",
    () => `tls_server_config: { ${PAIR}, client_auth_type: RequireAndVerifyClientCert }`,
  ],
  ["web_config_noAuth.good.yml", "good", () => `tls_server_config: { ${GIVEN} }`],
  [
    "web_config_noAuth_allCiphers.good.yml",
    "good",
    () =>
      `tls_server_config: { ${GIVEN}, cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA] }`,
  ],
  [
    "web_config_noAuth_allCurves.good.yml",
    "good",
    () => `tls_server_config: { ${GIVEN}, curve_preferences: [CurveP256, CurveP384, CurveP521, X25519] }`,
  ],
  [
    "web_config_noAuth_certPath_empty.bad.yml",
    "bad",
    () => 'tls_server_config: { cert_file: "", key_file: server.key }',
  ],
  [
    "web_config_noAuth_certPath_invalid.bad.yml",
    "bad",
    () => "tls_server_config: { cert_file: somefile, key_file: server.key }",
  ],
  [
    "web_config_noAuth_certPath_keyPath_empty.bad.yml",
    "bad",
    () => 'tls_server_config: { cert_file: "", key_file: "", client_auth_type: x }',
  ],
  [
    "web_config_noAuth_certPath_keyPath_invalid.bad.yml",
    "bad",
    () => "tls_server_config: { cert_file: somefile, key_file: somefile }",
  ],
  ["web_config_noAuth_cert_empty.bad.yml", "bad", () => 'tls_server_config: { cert: "", key_file: server.key }'],
  [
    "web_config_noAuth_inventedCiphers.bad.yml",
    "bad",
    () => `tls_server_config: { ${GIVEN}, cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA2048] }`,
  ],
  [
    "web_config_noAuth_inventedCurves.bad.yml",
    "bad",
    () => `tls_server_config: { ${GIVEN}, curve_preferences: [CurveP257] }`,
  ],
  [
    "web_config_noAuth_keyPath_empty.bad.yml",
    "bad",
    () => 'tls_server_config: { cert_file: server.crt, key_file: "" }',
  ],
  [
    "web_config_noAuth_keyPath_invalid.bad.yml",
    "bad",
    () => "tls_server_config: { cert_file: server.crt, key_file: somefile }",
  ],
  ["web_config_noAuth_key_empty.bad.yml", "bad", () => 'tls_server_config: { cert_file: server.crt, key: "" }'],
  [
    "web_config_noAuth_noHTTP2.good.yml",
    "good",
    () =>
      `tls_server_config: { ${GIVEN}, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384], max_version: TLS12 }\nhttp_server_config: { http2: false }`,
  ],
  [
    // The toolkit accepts the file, but its server does not start: HTTP/2 needs another cipher. We have no HTTP/2.
    "web_config_noAuth_noHTTP2Cipher.bad.yml",
    "good",
    () => `tls_server_config: { ${GIVEN}, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384], max_version: TLS12 }`,
  ],
  [
    "web_config_noAuth_someCiphers.good.yml",
    "good",
    () =>
      `tls_server_config: { ${GIVEN}, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384], min_version: TLS12, max_version: TLS12 }`,
  ],
  [
    "web_config_noAuth_someCiphers_noOrder.good.yml",
    "good",
    () =>
      `tls_server_config: { ${GIVEN}, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256], prefer_server_cipher_suites: false, min_version: TLS12, max_version: TLS12 }`,
  ],
  [
    "web_config_noAuth_someCurves.good.yml",
    "good",
    () => `tls_server_config: { ${GIVEN}, min_version: TLS13, curve_preferences: [CurveP521] }`,
  ],
  [
    "web_config_noAuth_tlsInline.good.yml",
    "good, too new",
    () =>
      `tls_server_config:\n${block("cert", server.cert)}${block("key", server.key)}  client_auth_type: VerifyClientCertIfGiven`,
  ],
  ["web_config_noAuth_wrongTLSVersion.bad.yml", "bad", () => `tls_server_config: { ${GIVEN}, min_version: TLS111 }`],
  ["web_config_rate_limiter_nonblocking.yaml", "good, too new", () => "rate_limit:\n  interval: 0\n  burst: 0\n"],
  ["web_config_rate_limiter_one_second.yaml", "good, too new", () => 'rate_limit:\n  interval: "1s"\n  burst: 0\n'],
  [
    "web_config_users.good.yml",
    "good",
    () =>
      `tls_server_config: { ${PAIR} }\nbasic_auth_users: { alice: ${hash.replace("$04$", "$12$")}, bob: ${hash.replace("$04$", "$18$")}, dave: ${hash} }`,
  ],
  ["web_config_users_noTLS.good.yml", "good", () => `basic_auth_users: { dave: ${hash.replace("$2b$", "$2y$")} }`],
];

/** Files without an example in the toolkit. */
const others: readonly (readonly [name: string, verdict: Verdict, web: () => string])[] = [
  ["only comments", "good", () => "# nothing yet\n\n# nor here\n"],
  ["an empty document", "good", () => "---\n"],
  ["null", "good", () => "~\n"],
  ["sections without a value", "good", () => "tls_server_config:\nhttp_server_config:\nbasic_auth_users:\n"],
  [
    "keys without a value",
    "good",
    () =>
      `tls_server_config: { ${PAIR}, client_auth_type: , client_ca_file: , min_version: , max_version: , cipher_suites: , prefer_server_cipher_suites: , curve_preferences: }\nhttp_server_config: { http2: , headers: { X-XSS-Protection: } }`,
  ],
  ["a user without a hash", "bad", () => "basic_auth_users: { ann: }"],
  ["an unknown key without a value", "bad", () => "tls_server_confg:\n"],
  ["a rate limit without values", "good, too new", () => "rate_limit: { interval: , burst: }"],
  ["a rate limit without an interval", "good, too new", () => "rate_limit: { burst: 1 }"],
  ["a TLS section without keys", "good", () => "tls_server_config: {}"],
  ["only a TLS version", "good", () => "tls_server_config: { min_version: TLS13 }"],
  ["empty TLS files", "good", () => 'tls_server_config: { cert_file: "", key_file: "", client_auth_type: "" }'],
  ["an empty client_ca_file", "good", () => `tls_server_config: { ${PAIR}, client_ca_file: "" }`],
  ["an empty version", "bad", () => `tls_server_config: { ${PAIR}, min_version: "" }`],
  ["only a client_auth_type", "bad", () => "tls_server_config: { client_auth_type: NoClientCert }"],
  ["a number as a header", "good", () => "http_server_config: { headers: { X-XSS-Protection: 1.50 } }"],
  ["a boolean of YAML 1.1", "good", () => "http_server_config: { http2: no }"],
  ["a quoted boolean of YAML 1.1", "bad", () => 'http_server_config: { http2: "no" }'],
  ["users with odd names", "good", () => `basic_auth_users: { 1: ${hash}, 1.0: ${hash}, on: ${hash} }`],
  ["a user twice", "bad", () => `basic_auth_users: { 1: ${hash}, "1": ${hash} }`],
  ["an empty text", "bad", () => '""'],
];

describe("a web configuration file", () => {
  test.each([...rows, ...others])("%s is %s to promtool and to us", async (_, verdict, web) => {
    const folder = folderWith(web());
    const isGood = verdict.startsWith("good");
    const settings = settingsIn(folder);
    expect(settings.ok ? [] : settings.error).toEqual(isGood ? [] : expect.arrayContaining([expect.any(String)]));
    if (verdict.endsWith("too new")) return;
    const promtool = startProcess(requireProgram("/usr/bin/promtool", "prometheus"), [
      "check",
      "web-config",
      folder.pathOf("web.yml"),
    ]);
    expect((await promtool.ended).code).toBe(isGood ? 0 : 1);
  });

  test.each([
    ...["1.5s", "100ms", "1h30m", "1m1h", "250us", "250µs", "5000ns", ".5s", "2.s", "0", "0s", "+1s"].map(
      (text) => [text, true] as const,
    ),
    ...["1d", "1w", "5", "-1s", "s", "1.5", "1 s", "''", "1e3s", "300y", "3000000h"].map(
      (text) => [text, false] as const,
    ),
  ])("accepts the rate limit interval %s as Go does: %s", (interval, isGood) => {
    expect(settingsIn(folderWith(`rate_limit: { interval: ${interval}, burst: 1 }`)).ok).toBe(isGood);
  });

  test("with a burst of 0 every request is answered 429; with an interval of 0 none is", async () => {
    const status = async (web: string) =>
      (await sendHttpRequest((await startServerWithFiles({ "web.yml": web })).web, "/metrics")).status;
    expect(await status("rate_limit: { interval: 1s, burst: 0 }")).toBe(429);
    expect(await status("rate_limit: { interval: 1s }")).toBe(429);
    expect(await status("rate_limit: { interval: 0, burst: 0 }")).toBe(200);
  });

  test("numbers in headers and user names are used as they are written", async () => {
    const { web } = await startServerWithFiles({
      "web.yml": `http_server_config: { headers: { X-XSS-Protection: 1.50 } }\nbasic_auth_users: { 007: ${hash} }`,
    });
    expect((await sendHttpRequest(web, "/metrics", { headers: basic("7", PASSWORD) })).status).toBe(401);
    expect(await sendHttpRequest(web, "/metrics", { headers: basic("007", PASSWORD) })).toMatchObject({
      status: 200,
      headers: { "x-xss-protection": "1.50" },
    });
  });

  test("a TLS section without a certificate means plain HTTP, as in the toolkit; empty versions have defaults", async () => {
    const { web } = await startServerWithFiles({ "web.yml": "tls_server_config: { min_version: TLS13 }" });
    expect(web.url).toMatch(/^http:/);
    const encrypted = await startServerWithFiles(files(`tls_server_config: { ${PAIR}, min_version: }`));
    const options = { ca: ca.cert, servername: "localhost", cert: client.cert, key: client.key };
    expect((await sendHttpRequest(encrypted.web, "/metrics", options)).status).toBe(200);
    await expect(sendHttpRequest(encrypted.web, "/metrics", { ...options, maxVersion: "TLSv1.1" })).rejects.toThrow();
  });
});
