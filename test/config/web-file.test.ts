import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { webJsonSchema } from "../../scripts/reference/config-reference.ts";
import { formatProblem } from "../../src/config/diagnostics/problem.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { WebConfig } from "../../src/config/schema/web-file.ts";
import { orThrow } from "../harness/or-throw.ts";
import { configErrors, loadWith, readWebText, sourceOf, webErrors, withService } from "./config-fixtures.ts";
import { validatorOf } from "./json-schema-validator.ts";

const HASH = `$2y$10$${"a".repeat(53)}`;
const TLS = "cert_file: web.crt, key_file: web.key";

function web(text: string, env: Record<string, string> = {}): WebConfig {
  return orThrow(readWebText("/etc/web.yml", text, env)).config;
}

const warnings = (text: string): string[] => {
  const read = readWebText("web.yml", text);
  return read.ok ? read.value.warnings.map(formatProblem) : ["not read"];
};

describe("a web configuration", () => {
  test("of a certificate and its key has the exporter-toolkit's defaults, and paths from its own folder", () => {
    expect(web(`tls_server_config: { ${TLS} }`)).toEqual({
      tls_server_config: {
        cert_file: "/etc/web.crt",
        key_file: "/etc/web.key",
        client_auth_type: "NoClientCert",
        min_version: "TLS12",
        max_version: "TLS13",
        cipher_suites: [],
        prefer_server_cipher_suites: true,
        curve_preferences: [],
      },
      http_server_config: { http2: true, headers: {} },
      basic_auth_users: {},
    });
  });

  test("may have every key of the toolkit", async () => {
    const text = `
tls_server_config:
  cert: &pem "-----BEGIN CERTIFICATE-----"
  key: "\${KEY}"
  client_ca: *pem
  client_auth_type: RequireAndVerifyClientCert
  client_allowed_sans: [prometheus.test, 10.0.0.1, "spiffe://test/prometheus"]
  min_version: TLS10
  max_version: TLS12
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, TLS_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: false
  curve_preferences: [X25519, CurveP256]
http_server_config:
  http2: false
  headers:
    Content-Security-Policy: default-src 'self'
    X-Frame-Options: sameorigin
    X-Content-Type-Options: nosniff
    X-XSS-Protection: ""
    Strict-Transport-Security: max-age=31536000; includeSubDomains
basic_auth_users:
  ann: ${HASH}
  "bob b": ${HASH.replace("$2y$", "$2a$")}
rate_limit: { interval: 100ms, burst: 20 }
`;
    const read = web(text, { KEY: "-----BEGIN EC PRIVATE KEY-----" });
    expect(read.tls_server_config).toMatchObject({ key: "-----BEGIN EC PRIVATE KEY-----", max_version: "TLS12" });
    expect(Object.keys(read.basic_auth_users)).toEqual(["ann", "bob b"]);
    expect(read.rate_limit).toEqual({ interval: 100, burst: 20 });
    const validate = await validatorOf(webJsonSchema());
    expect(await validate(parse(text))).toBeNull();
    expect(await validate({ rate_limit: { interval: 0 }, basic_auth_users: { ann: HASH.slice(1) } })).not.toBeNull();
    expect(await validate({ rate_limit: { interval: 0 } })).toBeNull();
  });

  test.each([
    [
      "tls_server_config: { cert_file: a, key_file: b, min_versoin: TLS12 }",
      '1:49: tls_server_config.min_versoin: unknown key; did you mean "min_version"?',
    ],
    ["tls_server_confg: {}", '1:1: tls_server_confg: unknown key; did you mean "tls_server_config"?'],
    [
      "tls_server_config: { client_auth_type: RequestClientCert }",
      "1:1: tls_server_config: found the key client_auth_type; must have either cert or cert_file",
    ],
    [
      "tls_server_config: { cert_file: a }",
      "1:1: tls_server_config: found the key cert_file; must have either key or key_file",
    ],
    [
      `tls_server_config: { ${TLS}, key: -----BEGIN PRIVATE KEY----- }`,
      "1:1: tls_server_config: found the keys cert_file, key_file, key; must have either key or key_file",
    ],
    [
      `tls_server_config: { ${TLS}, min_version: TLS1.2 }`,
      '1:74: tls_server_config.min_version: found "TLS1.2"; must be one of TLS10, TLS11, TLS12, TLS13; did you mean "TLS12"?',
    ],
    [
      `tls_server_config: { ${TLS}, min_version: TLS13, max_version: TLS12 }`,
      '1:94: tls_server_config.max_version: found "TLS12"; must not be older than min_version, which is TLS13',
    ],
    [
      `tls_server_config: { ${TLS}, client_auth_type: RequireAndVerify }`,
      /1:79: tls_server_config\.client_auth_type: found "RequireAndVerify"; must be one of NoClientCert, .*, RequireAndVerifyClientCert$/,
    ],
    [
      `tls_server_config: { ${TLS}, client_ca_file: ca.crt }`,
      "1:1: tls_server_config.client_auth_type: missing; must request a certificate if there are certificate authorities",
    ],
    [
      `tls_server_config: { ${TLS}, client_auth_type: VerifyClientCertIfGiven, client_allowed_sans: [a] }`,
      /1:79: tls_server_config\.client_auth_type: found "VerifyClientCertIfGiven"; must be RequireAndVerifyClientCert or RequireAnyClientCert if/,
    ],
    [
      `tls_server_config: { ${TLS}, client_auth_type: RequireAnyClientCert, client_allowed_sans: [] }`,
      /client_allowed_sans: found an empty list; must have at least one name, or be left out to allow every name$/,
    ],
    [
      `tls_server_config: { ${TLS}, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA] }`,
      /1:77: tls_server_config\.cipher_suites\[0\]: found "TLS_RSA_WITH_RC4_128_SHA"; must be one of TLS_AES_128_GCM_SHA256/,
    ],
    [
      `tls_server_config: { ${TLS}, curve_preferences: [P256] }`,
      '1:81: tls_server_config.curve_preferences[0]: found "P256"; must be one of CurveP256, CurveP384, CurveP521, X25519',
    ],
    [
      "http_server_config: { headers: { X-Frame-Option: deny } }",
      '1:34: http_server_config.headers.X-Frame-Option: unknown key; did you mean "X-Frame-Options"?',
    ],
    [
      "http_server_config: { headers: { X-Frame-Options: DENY } }",
      '1:51: http_server_config.headers.X-Frame-Options: found "DENY"; must be one of deny, sameorigin; did you mean "deny"?',
    ],
    [
      'http_server_config: { headers: { X-XSS-Protection: "0\\r\\nSet-Cookie: a" } }',
      /X-XSS-Protection: found "0\\r\\nSet-Cookie: a"; must be one line of ASCII characters$/,
    ],
    [
      "http_server_config: { http2: yes please }",
      '1:30: http_server_config.http2: found "yes please"; must be true or false',
    ],
    [
      "basic_auth_users: [ann]",
      "1:19: basic_auth_users: found a list; must be a mapping of user names to bcrypt hashes",
    ],
    [
      `basic_auth_users: { "a:b": ${HASH} }`,
      '1:28: basic_auth_users["a:b"]: found a secret that is not shown; must be a user name, without colons or control characters',
    ],
    [
      "rate_limit: { interval: 1d }",
      '1:25: rate_limit.interval: found "1d"; must be a Go duration, such as 100ms or 1.5s, or 0 for no limit',
    ],
    [
      "rate_limit: { interval: 1s, burst: -1 }",
      "1:36: rate_limit.burst: found -1; must be a whole number from 0 to 1000000",
    ],
  ])("%s is rejected at its position", (text, message) => {
    expect(webErrors(text)).toEqual([typeof message === "string" ? message : expect.stringMatching(message)]);
  });

  test.each([
    "sesame",
    HASH.slice(0, -1),
    HASH.replace("$10$", "$03$"),
    HASH.replace("$10$", "$19$"),
    HASH.replace("$2y$", "$2x$"),
  ])("the hash %s is refused, and not shown", (hash) => {
    const [message, ...others] = webErrors(`basic_auth_users:\n  ann: ${hash}\n`);
    expect(others).toEqual([]);
    expect(message).toMatch(
      /^2:8: basic_auth_users\.ann: found a secret that is not shown; must be a bcrypt hash, .* of cost 4 to 18/,
    );
    expect(message).not.toContain(hash);
  });

  test("that is valid may cause warnings", () => {
    const cheap = HASH.replace("$10$", "$04$");
    expect(warnings(`tls_server_config: { ${TLS} }\nbasic_auth_users: { ann: ${HASH} }`)).toEqual([]);
    expect(warnings(`basic_auth_users: { ann: ${cheap} }\nhttp_server_config: { http2: true }`)).toEqual([
      "web.yml:1:19: basic_auth_users: without tls_server_config passwords are sent in plain text",
      "web.yml:1:26: basic_auth_users.ann: the hash has a cost of 4; below 10 a stolen hash can be guessed quickly",
      "web.yml:2:30: http_server_config.http2: HTTP/2 is not supported: clients that prefer it use HTTP/1.1",
    ]);
    expect(
      warnings(`tls_server_config: { ${TLS}, min_version: TLS11, client_auth_type: RequireAndVerifyClientCert }`),
    ).toEqual([
      "web.yml:1:74: tls_server_config.min_version: TLS11 is insecure, and allows SHA-1 signatures",
      expect.stringContaining("client_auth_type: without client_ca_file the public CAs are trusted"),
    ]);
    expect(warnings("tls_server_config: { min_version: TLS13 }\nrate_limit: { interval: 1s }")).toEqual([
      "web.yml:1:20: tls_server_config: it has no certificate, so the server uses plain HTTP",
      "web.yml:2:13: rate_limit: a burst of 0 rejects every request except health checks",
    ]);
  });
});

describe("web.web_config_file", () => {
  const main = withService("web: { web_config_file: web.yaml }\nlog: { level: inf }\n");

  test("is read with the configuration, and the errors of both are reported", () => {
    const loaded = loadWith(main, { "web.yaml": "basic_auth_user: {}\n" });
    expect(loaded.ok ? [] : loaded.error.map(formatProblem)).toEqual([
      expect.stringMatching(/^p\.yaml:3:15: log\.level: /),
      'web.yaml:1:1: basic_auth_user: unknown key; did you mean "basic_auth_users"?',
    ]);
  });

  test("that is missing is an error at its key", () => {
    expect(loadWith(main, {}).ok).toBe(false);
    const source = {
      ...sourceOf(withService("web: { web_config_file: web.yml }")),
      readFile: () => ({ ok: false, error: "ENOENT" }) as const,
    };
    const loaded = loadConfig(source);
    expect(loaded.ok ? [] : loaded.error.map(formatProblem)).toContain(
      'p.yaml:2:25: web.web_config_file: found "web.yml"; must be a file that can be read: ENOENT',
    );
  });

  test("that is valid is part of the configuration, and its warnings are reported", () => {
    const loaded = orThrow(
      loadWith(withService("web: { web_config_file: web.yaml }"), {
        "web.yaml": `basic_auth_users: { ann: ${HASH} }`,
      }),
    );
    expect(loaded.webFile?.file).toBe("web.yaml");
    expect(loaded.webFile?.config).toMatchObject({ basic_auth_users: { ann: HASH } });
    expect(loaded.warnings.map(formatProblem)).toEqual([
      "web.yaml:1:19: basic_auth_users: without tls_server_config passwords are sent in plain text",
    ]);
  });

  test("is optional", () => {
    expect(configErrors(withService(""))).toEqual([]);
    const loaded = loadWith(withService(""), {});
    expect(loaded.ok && loaded.value.webFile).toBeNull();
  });
});
