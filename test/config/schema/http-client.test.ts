// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are YAML, and hold its variables
import { describe, expect, test } from "vitest";
import { configErrors, configWarnings, loadConfigText, withService } from "../config-fixtures.ts";

test("a server is configured as in Prometheus", () => {
  const text = `
prometheus:
  url: https://prometheus:9090/prefix/
  basic_auth: { username: proxywarden, password_file: pw }
  tls_config: { ca_file: ca.pem, cert_file: c.pem, key_file: k.pem, server_name: p, insecure_skip_verify: true }
alertmanager:
  url: http://alertmanager:9093
  authorization: { credentials: "\${TOKEN}" }
`;
  const read = loadConfigText(withService(text), { TOKEN: "sesame" });
  expect([read.prometheus, read.alertmanager]).toEqual([
    {
      url: "https://prometheus:9090/prefix",
      basic_auth: { username: "proxywarden", password_file: "pw" },
      tls_config: {
        ca_file: "ca.pem",
        cert_file: "c.pem",
        key_file: "k.pem",
        server_name: "p",
        insecure_skip_verify: true,
      },
    },
    { url: "http://alertmanager:9093", authorization: { type: "Bearer", credentials: "sesame" } },
  ]);
});

const SERVICE = "base_url: 'https://h', api_key_file: key";

test("the service is reached with a tls_config in the form of Prometheus, and through the proxy of the environment if configured", () => {
  const { service } = loadConfigText(
    `service: { ${SERVICE}, tls_config: { cert_file: c, key_file: k, server_name: s }, proxy_from_environment: true }`,
  );
  expect(service.tls_config).toEqual({ cert_file: "c", key_file: "k", server_name: "s", insecure_skip_verify: false });
  expect(service.proxy_from_environment).toBe(true);
  expect(loadConfigText(`service: { ${SERVICE}, proxy: "http://p:1" }`).service.proxy_from_environment).toBe(false);
  expect(loadConfigText(`service: { ${SERVICE}, ca_file: a, tls_config: { server_name: s } }`).service.ca_file).toBe(
    "a",
  );
});

test.each([
  ["tls_config: { cert_file: c }", "must have cert_file and key_file, or neither"],
  ["ca_file: a, tls_config: { ca_file: b }", "must have ca_file or tls_config.ca_file, not both"],
  ["proxy: 'http://p:1', proxy_from_environment: true", "must have proxy or proxy_from_environment, not both"],
])("a service with %s is rejected", (keys, expected) => {
  expect(configErrors(`service: { ${SERVICE}, ${keys} }`)).toEqual([expect.stringContaining(expected)]);
});

test.each(["https://chat.example.net/hooks/", "https://chat.example.net/hook?next=/"])(
  "the URL of a webhook keeps its trailing slash: %s",
  (url) => {
    const { receivers } = loadConfigText(withService(`receivers: [{ name: a, webhook_url: "${url}" }]`));
    expect(receivers).toEqual([{ name: "a", webhook_url: url }]);
  },
);

test("receivers are webhooks or the Alertmanager", () => {
  const text = `
alertmanager: { url: "http://alertmanager:9093" }
receivers:
  - { name: a, webhook_url: "\${HOOK}" }
  - { name: b, webhook_url_file: hook }
  - { name: c, alertmanager: true }
`;
  expect(loadConfigText(withService(text), { HOOK: "https://chat.example.net/x?y=z" }).receivers).toEqual([
    { name: "a", webhook_url: "https://chat.example.net/x?y=z" },
    { name: "b", webhook_url_file: "hook" },
    { name: "c", alertmanager: true },
  ]);
});

test("the admin token is in a file", () => {
  expect(loadConfigText(withService("web: { admin_token_file: token }")).web.admin_token_file).toBe("token");
});

describe("is rejected with the position and the expected value:", () => {
  test.each([
    ["prometheus: {}", "2:1: prometheus.url: missing; must be an http or https URL, such as http://localhost:9090"],
    [
      "prometheus: { url: 'http://a:b@h' }",
      '2:20: prometheus.url: found "http://***@h"; must be a URL without credentials, which belong in basic_auth',
    ],
    [
      "alertmanager: { url: 'http://h/am/api/v2/' }",
      '2:22: alertmanager.url: found "http://h/am/api/v2/"; must be a URL without /api/… at its end, which is appended',
    ],
    [
      "prometheus: { url: 'http://h', basic_auth: { username: u } }",
      "2:32: prometheus.basic_auth: found the key username; must have either password or password_file",
    ],
    [
      "prometheus: { url: 'http://h', authorization: { type: Basic, credentials_file: f } }",
      '2:55: prometheus.authorization.type: found "Basic"; must be the type of an Authorization header, such as Bearer; use basic_auth instead of Basic',
    ],
    [
      "prometheus: { url: 'http://h', authorization: { credentials_file: f }, basic_auth: { username: u, password_file: f } }",
      "2:1: prometheus: found the keys url, authorization, basic_auth; must have basic_auth or authorization, not both",
    ],
    [
      "prometheus: { url: 'http://h', tls_config: { cert_file: f } }",
      "2:32: prometheus.tls_config: found the key cert_file; must have cert_file and key_file, or neither",
    ],
    [
      "receivers: [{ name: a, alertmanager: true }]",
      "2:38: receivers[0].alertmanager: found true; needs the section alertmanager, with its url",
    ],
    ["receivers: [{ name: a, alertmanager: false }]", "2:38: receivers[0].alertmanager: found false; must be true"],
    [
      "receivers: [{ name: a, webhook_url_file: f, webhook_url: 'http://h' }]",
      "2:13: receivers[0]: found the keys webhook_url_file, webhook_url; must have exactly one of webhook_url, webhook_url_file, alertmanager, log",
    ],
    [
      "receivers: [{ name: a, webhook_url_file: f }, { name: a, webhook_url_file: g }]",
      '2:55: receivers[1].name: found "a"; must be unique, but an earlier entry has the same name',
    ],
  ])("%s", (text, expected) => {
    expect(configErrors(withService(text))).toEqual([expected]);
  });
});

const SECRETS = `
prometheus: { url: "http://h", basic_auth: { username: u, password: sesame } }
alertmanager: { url: "http://h", authorization: { credentials: sesame } }
receivers: [{ name: a, webhook_url: "http://h/sesame" }]
`;

test("warns of secrets in plain text, not of those from the environment", () => {
  expect(configWarnings(withService(SECRETS))).toEqual([
    "3:69: prometheus.basic_auth.password: the password is written in plain text; take it from the environment, or name its file as password_file",
    "4:64: alertmanager.authorization.credentials: the credential is written in plain text; take it from the environment, or name its file as credentials_file",
    "5:37: receivers[0].webhook_url: the webhook URL is written in plain text; take it from the environment, or name its file as webhook_url_file",
  ]);
  const fromOutside = SECRETS.replaceAll(/: "?(http:..h.)?sesame"?/g, ': "$1$${S}"');
  expect(fromOutside).toContain('webhook_url: "http://h/${S}"');
  expect(configWarnings(withService(fromOutside), { S: "x" })).toEqual([]);
});

test("no message shows a secret", () => {
  const wrong = SECRETS.replace("password: sesame", "password: [sesame]")
    .replace("credentials: sesame", "credentials: 12345")
    .replace("http://h/sesame", "htp://h/sesame");
  const shown = configErrors(withService(wrong)).join("\n");
  expect(shown).toMatch(/basic_auth\.password.*\n.*authorization\.credentials.*\n.*webhook_url/);
  expect(shown).not.toMatch(/sesame|12345/);
});
