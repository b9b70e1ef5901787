import { readFileSync } from "node:fs";
import { hashSync } from "bcryptjs";
import { beforeAll, describe, expect, test } from "vitest";
import { runApprovals } from "../../../src/cli/approvals.ts";
import { runHealthcheck } from "../../../src/cli/healthcheck.ts";
import { captureOutput, runInProcess } from "../../cli/terminal.ts";
import { fileText } from "../../config/config-fixtures.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { basic, sendHttpRequest, settingsIn } from "../../web/http/secured-server.ts";
import { createAuthority, type Identity } from "../../web/http/tls/certificate-authority.ts";
import { requireProgram, startCommand, startProcess, waitForStderr } from "../process.ts";
import { configText, startNetwork, startTestDaemon } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";
import { startPrometheus } from "./monitoring-servers.ts";

const PASSWORD = "correct-horse-battery";
const TOKEN = "an-admin-token";
const hash = hashSync(PASSWORD, 4);

let ca: string;
let server: Identity;
let client: Identity;

beforeAll(() => {
  const authority = createAuthority("own");
  ca = authority.cert;
  server = authority.issue("DNS:proxy.test");
  client = authority.issue("DNS:prometheus.test", "clientAuth");
});

const mutualTlsConfig = {
  cert_file: "web.crt",
  key_file: "web.key",
  client_auth_type: "RequireAndVerifyClientCert",
  client_ca_file: "ca.crt",
  client_allowed_sans: ["prometheus.test"],
};

/** A folder with certificates, a token, and a web configuration. */
function folderWith(web: object): TempFolder {
  const folder = createTempFolder();
  const files = { "ca.crt": ca, "web.crt": server.cert, "web.key": server.key, "client.crt": client.cert };
  for (const [name, text] of Object.entries({ ...files, "client.key": client.key, token: TOKEN })) {
    folder.write(name, text);
  }
  folder.write("web.yml", JSON.stringify(web));
  return folder;
}

test("a real Prometheus scrapes with its certificate and password; one with a wrong password gets 401", async () => {
  const folder = folderWith({ tls_server_config: mutualTlsConfig, basic_auth_users: { prometheus: hash } });
  const network = await startNetwork({ speed: 1 });
  const web = { listen: "127.0.0.1:0", web_config_file: folder.pathOf("web.yml") };
  const daemon = await startTestDaemon(network.clock, configText(network.url, { web }));
  expect(daemon.app.url()).toMatch(/^https:/);
  const job = (password: string) => ({
    scheme: "https",
    basic_auth: { username: "prometheus", password },
    tls_config: {
      ca_file: folder.pathOf("ca.crt"),
      cert_file: folder.pathOf("client.crt"),
      key_file: folder.pathOf("client.key"),
      server_name: "proxy.test",
    },
  });
  const target = new URL(daemon.app.url()).host;
  type Targets = { readonly activeTargets: readonly { readonly health: string; readonly lastError: string }[] };
  const targetWith = async (password: string) => {
    const prometheus = await startPrometheus(target, undefined, job(password));
    return waitUntil("Prometheus has scraped", async () => {
      const { activeTargets } = await prometheus.get<Targets>("targets");
      const [seen] = activeTargets;
      return seen !== undefined && seen.health !== "unknown" && seen;
    });
  };
  const [right, wrong] = await Promise.all([targetWith(PASSWORD), targetWith("wrong")]);
  expect(right).toMatchObject({ health: "up", lastError: "" });
  expect(wrong).toMatchObject({ health: "down", lastError: expect.stringContaining("401 Unauthorized") });
});

describe("promtool check web-config", () => {
  /** Checks the web configuration of a folder with promtool and with our loader. */
  async function verdicts(folder: TempFolder) {
    const promtool = startProcess(requireProgram("/usr/bin/promtool", "prometheus"), [
      "check",
      "web-config",
      folder.pathOf("web.yml"),
    ]);
    return { promtool: (await promtool.ended).code === 0, ours: settingsIn(folder).ok };
  }

  test("accepts our example, as we do", async () => {
    const folder = folderWith({});
    folder.write("web.yml", fileText("config/web.yml"));
    expect(await verdicts(folder)).toEqual({ promtool: true, ours: true });
    const uncommented = fileText("config/web.yml")
      .replace(/^( *)# (?=(?:client_\w+|headers): |headers:$)/gm, "$1")
      .replace("# headers:", "headers:")
      .replace("#   Strict", "  Strict")
      .replace("clients.crt", "ca.crt");
    expect(uncommented).toContain("\n  client_ca_file: ca.crt");
    folder.write("web.yml", uncommented);
    expect(settingsIn(folder)).toMatchObject({
      ok: true,
      value: { settings: { tls: { options: { requestCert: true } } } },
    });
  });

  const pair = { cert_file: "web.crt", key_file: "web.key" };
  test.each<[boolean, string, object]>([
    [
      true,
      "all types of client certificates",
      { tls_server_config: { ...pair, client_auth_type: "RequestClientCert" } },
    ],
    [true, "an older type", { tls_server_config: { ...pair, client_auth_type: "RequireClientCert" } }],
    [
      true,
      "ciphers, curves and versions",
      {
        tls_server_config: {
          ...pair,
          cipher_suites: ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_AES_256_GCM_SHA384"],
          curve_preferences: ["CurveP521", "X25519"],
          min_version: "TLS11",
          max_version: "TLS12",
        },
      },
    ],
    [true, "every header", { http_server_config: { headers: { "X-XSS-Protection": "1", "X-Frame-Options": "deny" } } }],
    [true, "users", { basic_auth_users: { ann: hash, bob: hash.replace("$2b$", "$2y$") } }],
    [false, "an insecure cipher", { tls_server_config: { ...pair, cipher_suites: ["TLS_RSA_WITH_RC4_128_SHA"] } }],
    [false, "an unknown curve", { tls_server_config: { ...pair, curve_preferences: ["P256"] } }],
    [false, "an unknown version", { tls_server_config: { ...pair, min_version: "SSL3" } }],
    [false, "an unknown type", { tls_server_config: { ...pair, client_auth_type: "Require" } }],
    [false, "no key", { tls_server_config: { cert_file: "web.crt" } }],
    [false, "a key of another certificate", { tls_server_config: { ...pair, key_file: "client.key" } }],
    [false, "a missing file", { tls_server_config: { ...pair, key_file: "none.key" } }],
    [
      false,
      "authorities without a check of client certificates",
      { tls_server_config: { ...pair, client_ca_file: "ca.crt" } },
    ],
    [false, "an unknown key", { tls_server_confg: pair }],
    [false, "an unknown header", { http_server_config: { headers: { Server: "x" } } }],
    [false, "an invalid header value", { http_server_config: { headers: { "X-Frame-Options": "DENY" } } }],
    [false, "a password instead of a hash", { basic_auth_users: { ann: PASSWORD } }],
  ])("returns %s for %s, and so do we", async (expected, _, web) => {
    expect(await verdicts(folderWith(web))).toEqual({ promtool: expected, ours: expected });
  });
});

describe("commands", () => {
  test("work over TLS and basic auth, and explain an untrusted certificate", async () => {
    const pair = { cert_file: "web.crt", key_file: "web.key" };
    const folder = folderWith({ tls_server_config: pair, basic_auth_users: { ann: hash } });
    const network = await startNetwork({ speed: 1 });
    const config = folder.write(
      "proxywarden.yaml",
      configText(network.url, {
        state: { path: folder.pathOf("state") },
        web: { listen: "127.0.0.1:0", web_config_file: "web.yml", admin_token_file: "token" },
      }),
    );
    const daemon = startCommand("run", "--config", config);
    const [, url = ""] = await waitForStderr(daemon, /"url":"(https:[^"]+)".*"msg":"daemon started"/);
    const tls = { ca_file: "ca.crt", server_name: "proxy.test" };
    const trusting = folder.write("trusting.yml", JSON.stringify({ tls_config: tls }));
    const known = folder.write(
      "known.yml",
      JSON.stringify({ tls_config: tls, basic_auth: { username: "ann", password: PASSWORD } }),
    );
    const misspelt = folder.write("misspelt.yml", "tls_config: { ca_fil: ca.crt }");
    const health = (options: object) => captureOutput((context) => runHealthcheck({ url, ...options }, context));
    const listApprovals = (httpConfigFile: string) =>
      captureOutput((context) => runApprovals({ url, httpConfigFile, output: "text" }, context));
    const [untrusted, healthy, invalid, paused, anonymous, listed] = await Promise.all([
      health({}),
      health({ httpConfigFile: trusting }),
      health({ httpConfigFile: misspelt }),
      runInProcess("pause", "--url", url, "--http-config-file", trusting, "--token-file", folder.pathOf("token")),
      listApprovals(trusting),
      listApprovals(known),
    ]);
    expect(untrusted).toMatchObject({
      code: 1,
      err: expect.stringMatching(/is not healthy: .*certificate.*--http-config-file/),
    });
    expect(healthy).toEqual({ code: 0, out: "healthy\n", err: "" });
    expect(invalid).toMatchObject({
      code: 1,
      err: `proxywarden: ${misspelt}:1:15: tls_config.ca_fil: unknown key; did you mean "ca_file"?\n`,
    });
    expect(paused).toMatchObject({ code: 0, err: "" });
    expect(anonymous).toMatchObject({
      code: 1,
      err: `proxywarden: ${url} requires basic auth: pass a file with basic_auth as --http-config-file\n`,
    });
    expect(listed).toEqual({
      code: 0,
      out: "no actions are waiting to be approved or sent\n",
      err: "",
    });

    // The daemon is also found by its configuration, which now names the port.
    const { port } = new URL(url);
    const fixed = folder.write("fixed.yaml", readFileSync(config, "utf8").replace("127.0.0.1:0", `0.0.0.0:${port}`));
    expect(await health({ config: fixed })).toEqual({ code: 0, out: "healthy\n", err: "" });
  });

  test("check reports problems of the web configuration and its certificates; run fails with the same", async () => {
    const folder = folderWith({});
    folder.write("web.yml", "tls_server_config:\n  cert_file: web.crt\n  key_file: web.key\n  min_vresion: TLS13\n");
    const config = folder.write(
      "proxywarden.yaml",
      configText("http://127.0.0.1:1", {
        state: { path: folder.pathOf("state") },
        web: { web_config_file: "web.yml" },
      }),
    );
    const line = `${folder.pathOf("web.yml")}:4:3: tls_server_config.min_vresion: unknown key; did you mean "min_version"?\n`;
    const [checked, run] = await Promise.all([
      runInProcess("check", "--config", config),
      runInProcess("run", "--config", config),
    ]);
    expect(checked).toMatchObject({ code: 1, err: expect.stringContaining(line) });
    expect(run).toMatchObject({ code: 1, err: `proxywarden: ${line}` });
    folder.write("web.yml", "tls_server_config: { cert_file: web.crt, key_file: client.key }");
    const mismatch = await runInProcess("check", "--config", config);
    expect(mismatch.code).toBe(1);
    expect(mismatch.err).toContain("tls_server_config.key_file: ");
    expect(mismatch.err).toContain("client.key does not match the certificate");
  });
});

test("healthcheck --config says that the daemon may require a client certificate", async () => {
  const folder = folderWith({ tls_server_config: mutualTlsConfig });
  const { clock, url } = await startNetwork({ speed: 1 });
  const configOf = (listen: string) => configText(url, { web: { listen, web_config_file: folder.pathOf("web.yml") } });
  const { app } = await startTestDaemon(clock, configOf("127.0.0.1:0"));
  const config = folder.write("proxywarden.yaml", configOf(new URL(app.url()).host));
  expect(await runInProcess("healthcheck", "--config", config)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/; if it requires a client certificate, pass one with --http-config-file\n$/),
  });
});

test("a reload turns users on and off, and refuses to turn TLS off", async () => {
  const tls = { tls_server_config: { cert_file: "web.crt", key_file: "web.key" } };
  const folder = folderWith({ ...tls, basic_auth_users: { ann: hash } });
  folder.write("open.yml", JSON.stringify(tls));
  const network = await startNetwork({ speed: 1 });
  const text = (web: object) => configText(network.url, { web: { listen: "127.0.0.1:0", ...web } });
  const daemon = await startTestDaemon(network.clock, text({ web_config_file: folder.pathOf("open.yml") }));
  const { app } = daemon;
  const trusting = { ca, servername: "proxy.test" };
  const status = async (options: object) =>
    (await sendHttpRequest({ url: app.url() }, "/metrics", { ...trusting, ...options })).status;
  expect(await status({})).toBe(200);

  daemon.configure(text({ web_config_file: folder.pathOf("web.yml") }));
  expect(await app.reload()).toEqual({ ok: true, value: undefined });
  expect(await status({})).toBe(401);
  expect(await status({ headers: basic("ann", PASSWORD) })).toBe(200);
  const page = await sendHttpRequest({ url: app.url() }, "/metrics", { ...trusting, headers: basic("ann", PASSWORD) });
  expect(page.text).toMatch(/^proxywarden_web_config_last_reload_successful 1$/m);
  expect(page.text).toMatch(/^proxywarden_web_refusals_total\{reason="credentials"\} 1$/m);
  expect(page.text).toMatch(/^proxywarden_web_certificate_expiration_timestamp_seconds \d/m);

  daemon.configure(text({ web_config_file: folder.pathOf("none.yml") }));
  expect(await app.reload()).toMatchObject({ ok: false });
  expect(await status({})).toBe(401);

  daemon.configure(text({}));
  expect(await app.reload()).toEqual({
    ok: false,
    error: [expect.stringMatching(/^web\.web_config_file: can't change from https while the daemon runs/)],
  });
  expect(await status({})).toBe(401);

  daemon.configure(text({ web_config_file: folder.pathOf("open.yml") }));
  expect(await app.reload()).toEqual({ ok: true, value: undefined });
  expect(await status({})).toBe(200);
});
