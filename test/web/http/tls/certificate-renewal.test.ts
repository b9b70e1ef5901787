import { once } from "node:events";
import { renameSync, rmSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { sendHttpRequest, startServerWithFiles } from "../secured-server.ts";
import { loggedFields, loggedMessages } from "../test-server.ts";
import { clientOptions, serverFiles, type TestCertificates, testCertificates, tlsHandshake } from "./certificates.ts";

let made: TestCertificates;
beforeAll(() => {
  made = testCertificates();
});

describe("a certificate that is renewed", () => {
  const serial = async (url: string) => (await tlsHandshake(url, {})).getPeerX509Certificate()!.serialNumber;

  test("is used for new connections without a restart, and open ones stay open", async () => {
    const { web, folder, clock, metrics } = await startServerWithFiles(serverFiles());
    const old = await serial(web.url);
    const recorded = await tlsHandshake(web.url, {});
    folder.write("web.crt", made.renewed.cert);
    folder.write("web.key", made.renewed.key);
    // The files are checked once a second.
    expect(await serial(web.url)).toBe(old);
    clock.nowMs += 1_000;
    expect(await serial(web.url)).not.toBe(old);
    expect(loggedMessages).toContain("web configuration reloaded");
    expect(metrics.proxywarden_web_config_last_reload_successful).toBe(1);
    recorded.write("GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String((await once(recorded, "data"))[0])).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  test("that is invalid is not used: a log line and a metric report it until it is repaired", async () => {
    const { web, folder, clock, metrics } = await startServerWithFiles(serverFiles());
    const old = await serial(web.url);
    const repair = () => {
      for (const [name, text] of Object.entries(serverFiles())) folder.write(name, text);
    };
    const breaks: readonly (() => void)[] = [
      () => folder.write("web.crt", "-----BEGIN CERTIFICATE-----\n"),
      () => folder.write("web.crt", made.renewed.cert),
      () => rmSync(folder.pathOf("web.crt")),
      () => renameSync(folder.pathOf("web.key"), folder.pathOf("elsewhere")),
      () => folder.write("web.yml", "tls_server_config: { cert_file"),
      () => folder.write("web.yml", serverFiles("min_versoin: TLS13")["web.yml"]),
      () => folder.write("web.yml", ""),
    ];
    for (const [index, breakIt] of breaks.entries()) {
      breakIt();
      clock.nowMs += 1_000;
      expect(await serial(web.url)).toBe(old);
      clock.nowMs += 1_000;
      expect(await serial(web.url)).toBe(old);
      // Logged once, not at every check.
      expect(loggedMessages.filter((message) => message.startsWith("invalid web configuration"))).toHaveLength(
        index + 1,
      );
      expect(metrics.proxywarden_web_config_last_reload_successful).toBe(0);
      repair();
      clock.nowMs += 1_000;
      expect(await serial(web.url)).toBe(old);
      expect(metrics.proxywarden_web_config_last_reload_successful).toBe(1);
    }
    expect(JSON.stringify(loggedFields)).toContain("web.yml:1:61: tls_server_config.min_versoin: unknown key; did you");
    expect(JSON.stringify(loggedFields)).not.toContain("PRIVATE");
  });

  test("a file that web.yml already names is used as soon as it exists", async () => {
    const { web, folder, clock } = await startServerWithFiles(serverFiles());
    const old = await serial(web.url);
    folder.write("web.yml", "tls_server_config: { cert_file: next.crt, key_file: next.key }");
    clock.nowMs += 1_000;
    expect(await serial(web.url)).toBe(old);
    folder.write("next.crt", made.renewed.cert);
    folder.write("next.key", made.renewed.key);
    clock.nowMs += 1_000;
    expect(await serial(web.url)).not.toBe(old);
  });

  test("a changed file does not turn TLS off", async () => {
    const { web, folder, clock, metrics } = await startServerWithFiles(serverFiles());
    folder.write("web.yml", "http_server_config: { http2: false }");
    clock.nowMs += 1_000;
    expect((await sendHttpRequest(web, "/metrics", clientOptions())).status).toBe(200);
    expect(metrics.proxywarden_web_config_last_reload_successful).toBe(0);
    expect(JSON.stringify(loggedFields)).toContain("turning TLS off needs a restart");
  });

  test("client certificates are required as soon as the file requires them", async () => {
    const { web, folder, clock } = await startServerWithFiles(serverFiles());
    const status = (identity: Parameters<typeof clientOptions>[0]) =>
      sendHttpRequest(web, "/metrics", clientOptions(identity)).then(
        (response) => response.status,
        () => "refused",
      );
    expect(await status(null)).toBe(200);
    const keys = "client_auth_type: RequireAndVerifyClientCert, client_ca_file: clients.crt";
    folder.write("web.yml", serverFiles(keys)["web.yml"]);
    clock.nowMs += 1_000;
    expect(await status(null)).toBe("refused");
    expect(await status(made.forged)).toBe("refused");
    expect(await status(made.prometheus)).toBe(200);
  });

  test("a changed file does not turn TLS on", async () => {
    const { web, folder, clock, metrics } = await startServerWithFiles({
      ...serverFiles(),
      "web.yml": "rate_limit: { interval: 0 }",
    });
    folder.write("web.yml", serverFiles()["web.yml"]);
    clock.nowMs += 1_000;
    expect((await sendHttpRequest(web, "/metrics")).status).toBe(200);
    expect(metrics.proxywarden_web_config_last_reload_successful).toBe(0);
  });
});
