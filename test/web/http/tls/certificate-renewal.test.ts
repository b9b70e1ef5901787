import { once } from "node:events";
import { renameSync, rmSync } from "node:fs";
import { Agent } from "node:http";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { sendHttpRequest, settingsIn, startServerWithFiles } from "../secured-server.ts";
import { loggedFields, loggedMessages } from "../test-server.ts";
import { clientOptions, serverFiles, type TestCertificates, testCertificates, tlsHandshake } from "./certificates.ts";

let made: TestCertificates;
beforeAll(() => {
  made = testCertificates();
});

describe("a certificate that is renewed", () => {
  const serial = async (url: string) => (await tlsHandshake(url, {})).getPeerX509Certificate()!.serialNumber;

  test("is shown from the next connection on, without a restart; the old connections go on", async () => {
    const { web, folder, clock, metrics } = await startServerWithFiles(serverFiles());
    const old = await serial(web.url);
    const recorded = await tlsHandshake(web.url, {});
    folder.write("web.crt", made.renewed.cert);
    folder.write("web.key", made.renewed.key);
    // Not even looked at yet: it was a moment ago.
    expect(await serial(web.url)).toBe(old);
    clock.nowMs += 1_000;
    expect(await serial(web.url)).not.toBe(old);
    expect(loggedMessages).toContain("The web configuration was read anew, and is in force.");
    expect(metrics.proxywarden_web_config_last_reload_successful).toBe(1);
    recorded.write("GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String((await once(recorded, "data"))[0])).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  test("that is broken is not: the old one is shown on, the log says why, a metric says so, until it is mended", async () => {
    const { web, folder, clock, metrics } = await startServerWithFiles(serverFiles());
    const old = await serial(web.url);
    const mend = () => {
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
      // Said once, not at every look.
      expect(loggedMessages.filter((message) => message.includes("is refused"))).toHaveLength(index + 1);
      expect(metrics.proxywarden_web_config_last_reload_successful).toBe(0);
      mend();
      clock.nowMs += 1_000;
      expect(await serial(web.url)).toBe(old);
      expect(metrics.proxywarden_web_config_last_reload_successful).toBe(1);
    }
    expect(JSON.stringify(loggedFields)).toContain("web.yml:1:61: tls_server_config.min_versoin: unknown key; did you");
    expect(JSON.stringify(loggedFields)).not.toContain("PRIVATE");
  });

  test("a file that a new web.yml names, and that comes after it, is seen when it comes", async () => {
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

  test("a file never turns TLS off by itself; a reload does", async () => {
    const { web, folder, clock, metrics } = await startServerWithFiles(serverFiles());
    folder.write("web.yml", "http_server_config: { http2: false }");
    clock.nowMs += 1_000;
    expect((await sendHttpRequest(web, "/metrics", clientOptions())).status).toBe(200);
    expect(metrics.proxywarden_web_config_last_reload_successful).toBe(0);
    expect(JSON.stringify(loggedFields)).toContain("TLS is turned off by a reload alone");
    const terms = settingsIn(folder);
    if (!terms.ok) throw new Error(terms.error.join("\n"));
    web.applySettings(terms.value);
    expect(web.url).toMatch(/^http:/);
    expect((await sendHttpRequest(web, "/metrics")).status).toBe(200);
    expect(metrics.proxywarden_web_config_last_reload_successful).toBe(1);
  });

  test("a file never turns TLS on by itself either: the address would be another", async () => {
    const { web, folder, clock, metrics } = await startServerWithFiles({
      ...serverFiles(),
      "web.yml": "rate_limit: { interval: 0 }",
    });
    folder.write("web.yml", serverFiles()["web.yml"]);
    clock.nowMs += 1_000;
    expect((await sendHttpRequest(web, "/metrics")).status).toBe(200);
    expect(metrics.proxywarden_web_config_last_reload_successful).toBe(0);
  });

  test("a connection that came in plain ends with its next answer once a reload has turned TLS on", async () => {
    const { web, folder } = await startServerWithFiles({ ...serverFiles(), "web.yml": "rate_limit: { interval: 0 }" });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const plainUrl = { url: web.url };
    expect((await sendHttpRequest(plainUrl, "/metrics", { agent })).headers.connection).toBe("keep-alive");
    folder.write("web.yml", serverFiles()["web.yml"]);
    const terms = settingsIn(folder);
    if (!terms.ok) throw new Error(terms.error.join("\n"));
    web.applySettings(terms.value);
    expect(await sendHttpRequest(plainUrl, "/metrics", { agent })).toMatchObject({
      status: 200,
      headers: { connection: "close" },
    });
    expect((await sendHttpRequest(plainUrl, "/metrics", { agent })).status).toBe(400);
  });
});
