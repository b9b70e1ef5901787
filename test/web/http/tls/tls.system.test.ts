import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { promisify } from "node:util";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { SHUTDOWN_BUDGET } from "../../../../src/daemon/shutdown.ts";
import { alternativeNames } from "../../../../src/web/http/tls/tls-settings.ts";
import { createTempFolder } from "../../../harness/temp-folder.ts";
import { waitUntil } from "../../../integration/wait-until.ts";
import { sendHttpRequest, settingsIn, startServerWithFiles } from "../secured-server.ts";
import { loggedFields } from "../test-server.ts";
import type { Identity } from "./certificate-authority.ts";
import { clientOptions, serverFiles, type TestCertificates, testCertificates, tlsHandshake } from "./certificates.ts";

let made: TestCertificates;
beforeAll(() => {
  made = testCertificates();
});

describe("TLS", () => {
  test("uses the certificate of the file, and the URL has the scheme https", async () => {
    const { web, metrics } = await startServerWithFiles(serverFiles());
    expect(web.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(await sendHttpRequest(web, "/-/healthy", clientOptions())).toMatchObject({ status: 200, text: "healthy\n" });
    await expect(sendHttpRequest(web, "/-/healthy")).rejects.toThrow(/unable to verify/);
    const endsAt = metrics.proxywarden_web_certificate_expiration_timestamp_seconds!;
    expect(endsAt - Date.now() / 1_000).toBeCloseTo(2 * 86_400, -3);
  });

  test("accepts a certificate and a key in the web configuration itself", async () => {
    const text = JSON.stringify({ tls_server_config: { cert: made.server.cert, key: made.server.key } });
    const { web } = await startServerWithFiles({ "web.yml": text });
    expect((await sendHttpRequest(web, "/metrics", clientOptions())).status).toBe(200);
  });

  test("supports versions 1.2 and 1.3, not 1.1", async () => {
    const { web, metrics } = await startServerWithFiles(serverFiles());
    const legacy = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" } as const;
    await expect(tlsHandshake(web.url, legacy)).rejects.toThrow(/protocol version/);
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      const socket = await tlsHandshake(web.url, { minVersion: version, maxVersion: version });
      expect(socket.getProtocol()).toBe(version);
    }
    expect(metrics["proxywarden_web_refusals_total handshake"]).toBe(1);
  });

  test("supports only the configured versions, ciphers and curves", async () => {
    const keys = "min_version: TLS11, max_version: TLS12, curve_preferences: [CurveP384]";
    const { web } = await startServerWithFiles(
      serverFiles(`${keys}, cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA]`),
    );
    const legacy = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" } as const;
    const socket = await tlsHandshake(web.url, legacy);
    expect(socket.getProtocol()).toBe("TLSv1.1");
    expect(socket.getCipher().name).toBe("ECDHE-ECDSA-AES256-SHA");
    expect(socket.getEphemeralKeyInfo()).toMatchObject({ name: "secp384r1" });
    await expect(tlsHandshake(web.url, { minVersion: "TLSv1.3" })).rejects.toThrow(/protocol version/);
    await expect(tlsHandshake(web.url, { ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" })).rejects.toThrow(
      /handshake failure/,
    );
    await expect(tlsHandshake(web.url, { ecdhCurve: "P-256" })).rejects.toThrow(/handshake failure/);
  });

  test("prefers the server's order of ciphers, or the client's if configured", async () => {
    const suites = ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"];
    const keys = `max_version: TLS12, cipher_suites: [${suites}]`;
    const ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384";
    const chosen = async (more: string) =>
      (await tlsHandshake((await startServerWithFiles(serverFiles(keys + more))).web.url, { ciphers })).getCipher()
        .name;
    expect(await chosen("")).toBe("ECDHE-ECDSA-AES256-GCM-SHA384");
    expect(await chosen(", prefer_server_cipher_suites: false")).toBe("ECDHE-ECDSA-AES128-GCM-SHA256");
  });

  test("negotiates HTTP/1.1, never HTTP/2", async () => {
    const { web } = await startServerWithFiles(serverFiles());
    expect((await tlsHandshake(web.url, { ALPNProtocols: ["h2", "http/1.1"] })).alpnProtocol).toBe("http/1.1");
    await expect(tlsHandshake(web.url, { ALPNProtocols: ["h2"] })).rejects.toThrow(/no application protocol/);
  });

  test("answers a plain HTTP request with 400 and a hint", async () => {
    const { web, metrics } = await startServerWithFiles(serverFiles());
    const plain = await sendHttpRequest({ url: web.url.replace("https:", "http:") }, "/metrics");
    expect(plain).toMatchObject({ status: 400, text: "plain HTTP request sent to an HTTPS server: use https://\n" });
    expect(metrics["proxywarden_web_refusals_total handshake"]).toBe(1);
    expect((await sendHttpRequest(web, "/metrics", clientOptions())).status).toBe(200);
  });

  test("works with curl", async () => {
    const { web, folder } = await startServerWithFiles(serverFiles());
    const curl = ["-sS", "--cacert", folder.pathOf("clients.crt"), "--tls-max", "1.2", `${web.url}/-/healthy`];
    expect((await promisify(execFile)("curl", curl)).stdout).toBe("healthy\n");
  });

  test("does not renegotiate", async () => {
    const { web } = await startServerWithFiles(serverFiles());
    const socket = await tlsHandshake(web.url, { maxVersion: "TLSv1.2" });
    const ended = once(socket, "error");
    socket.renegotiate({}, () => undefined);
    expect(String((await ended)[0])).toMatch(/no renegotiation/);
  });
});

describe("a client's certificate", () => {
  /** Requests the metrics with each client certificate and returns the statuses. */
  async function responses(keys: string, clients: readonly (Identity | null)[]): Promise<(number | "refused")[]> {
    const { web } = await startServerWithFiles(serverFiles(keys));
    return Promise.all(
      clients.map((client) =>
        sendHttpRequest(web, "/metrics", clientOptions(client)).then(
          ({ status }) => status,
          () => "refused" as const,
        ),
      ),
    );
  }

  test.each([
    ["NoClientCert", "", [200, 200, 200]],
    ["RequestClientCert", ", client_ca_file: clients.crt", [200, 200, 200]],
    ["RequireAnyClientCert", "", ["refused", 200, 200]],
    ["RequireClientCert", "", ["refused", 200, 200]],
    ["VerifyClientCertIfGiven", ", client_ca_file: clients.crt", [200, "refused", 200]],
    ["RequireAndVerifyClientCert", ", client_ca_file: clients.crt", ["refused", "refused", 200]],
  ] as const)("%s: no certificate, one of another authority, one of ours", async (type, more, expected) => {
    expect(await responses(`client_auth_type: ${type}${more}`, [null, made.forged, made.prometheus])).toEqual(expected);
  });

  test.each([
    ["TLSv1.2", 200],
    ["TLSv1.3", 200],
  ] as const)("is requested in %s", async (version, status) => {
    const { web, metrics } = await startServerWithFiles(
      serverFiles("client_auth_type: RequireAndVerifyClientCert, client_ca_file: clients.crt"),
    );
    const over = { minVersion: version, maxVersion: version };
    expect((await sendHttpRequest(web, "/", clientOptions(made.prometheus, over))).status).toBe(status);
    for (const refused of [null, made.forged])
      await expect(sendHttpRequest(web, "/", clientOptions(refused, over))).rejects.toThrow();
    const count = () => metrics["proxywarden_web_refusals_total client_certificate"];
    await waitUntil("both are counted", () => count() === 2);
    expect(loggedFields).toEqual([
      { from: "127.0.0.1", reason: "no client certificate" },
      { from: "127.0.0.1", reason: expect.stringMatching(/^the certificate could not be verified: /) },
    ]);
  });

  test("must be valid for clients", async () => {
    const keys = "client_auth_type: RequireAndVerifyClientCert, client_ca_file: clients.crt";
    expect(await responses(keys, [made.server, made.prometheus])).toEqual(["refused", 200]);
  });

  test.each(["prometheus.test", "spiffe://test/prometheus", "2001:DB8:0::1"])(
    "is accepted only with the name %s",
    async (name) => {
      const keys = `client_auth_type: RequireAndVerifyClientCert, client_ca_file: clients.crt, client_allowed_sans: ["other.test", "${name}"]`;
      expect(await responses(keys, [made.prometheus, made.otherClient, made.forged, null])).toEqual([
        200,
        "refused",
        "refused",
        "refused",
      ]);
      const reasons = loggedFields.map(({ reason }) => reason);
      expect(reasons).toContain("none of the certificate's subject alternative names is in client_allowed_sans");
      expect(reasons).toContainEqual(
        expect.stringMatching(/^the certificate could not be verified: .*(?:SIGNATURE|ISSUER)/),
      );
    },
  );

  test("RequireAnyClientCert checks only the name, as in the exporter-toolkit", async () => {
    const keys = "client_auth_type: RequireAnyClientCert, client_allowed_sans: [prometheus.test]";
    expect(await responses(keys, [made.forged, made.otherClient, null])).toEqual([200, "refused", "refused"]);
  });

  test("is checked again when a session is resumed", async () => {
    const keys = "client_auth_type: RequireAndVerifyClientCert, client_ca_file: clients.crt, max_version: TLS12";
    const { web, folder, clock } = await startServerWithFiles(
      serverFiles(`${keys}, client_allowed_sans: [prometheus.test]`),
    );
    const first = await tlsHandshake(web.url, clientOptions(made.prometheus));
    const session = first.getSession();
    first.end();
    expect((await tlsHandshake(web.url, clientOptions(made.prometheus, { session }))).isSessionReused()).toBe(true);
    expect((await sendHttpRequest(web, "/", clientOptions(made.prometheus, { session }))).status).toBe(200);
    writeFileSync(folder.pathOf("web.yml"), serverFiles(`${keys}, client_allowed_sans: [second.test]`)["web.yml"]);
    clock.nowMs += 1_000;
    await expect(sendHttpRequest(web, "/", clientOptions(made.prometheus, { session }))).rejects.toThrow();
    expect((await sendHttpRequest(web, "/", clientOptions(made.otherClient))).status).toBe(200);
  });

  test("has its subject alternative names parsed and normalized", () => {
    const names = (subjectAltName: string) => alternativeNames({ subjectAltName });
    expect(names("DNS:a.test, DirName:CN=DNS:b.test, IP Address:2001:DB8:0:0:0:0:0:1, email:a@b.test")).toEqual(
      // Names of other kinds are ignored.
      ["a.test", "2001:db8::1", "a@b.test"],
    );
    expect(names('DNS:"a.test, DNS:evil.test", URI:"x\\u0022y"')).toEqual(["a.test, DNS:evil.test", 'x"y']);
    expect(names('DNS:a.test, DNS:"evil')).toEqual([]);
    expect(alternativeNames({ subjectAltName: undefined })).toEqual([]);
  });
});

test("closed connections make room for others", async () => {
  const { web } = await startServerWithFiles(serverFiles());
  for (let time = 0; time < 70; time++)
    expect((await sendHttpRequest(web, "/metrics", clientOptions())).status).toBe(200);
});

describe("an invalid configuration", () => {
  test.each([
    [
      "a certificate that is none",
      { "web.crt": "garbage" },
      /tls_server_config\.cert_file: .*web\.crt holds no certificate/,
    ],
    [
      "a key that is none",
      { "web.key": "garbage" },
      /web\.yml:1:\d+: tls_server_config\.key_file: .*web\.key must contain an unencrypted private key/,
    ],
    [
      "authorities that are none",
      { "clients.crt": "garbage" },
      /tls_server_config\.client_ca_file: .*clients\.crt holds no certificate/,
    ],
  ])("%s: the error names the key and the file", (_, broken, message) => {
    const folder = createTempFolder();
    const all = { ...serverFiles("client_auth_type: RequestClientCert, client_ca_file: clients.crt"), ...broken };
    for (const [name, text] of Object.entries(all)) folder.write(name, text);
    const terms = settingsIn(folder);
    expect(terms.ok ? [] : terms.error).toEqual([expect.stringMatching(message)]);
  });

  test("with the key of another certificate is an error", () => {
    const folder = createTempFolder();
    for (const [name, text] of Object.entries({ ...serverFiles(), "web.key": made.renewed.key }))
      folder.write(name, text);
    const other = settingsIn(folder);
    expect(other.ok ? [] : other.error).toEqual([
      expect.stringMatching(/key_file: .*web\.key does not match the certificate$/),
    ]);
  });
});

test("an unfinished handshake blocks neither other clients nor closing", async () => {
  const { web, metrics } = await startServerWithFiles(serverFiles());
  const { port } = new URL(web.url);
  const idle = connectTcp(Number(port), "127.0.0.1");
  onTestFinished(() => void idle.destroy());
  idle.on("error", () => undefined);
  await once(idle, "connect");
  expect((await sendHttpRequest(web, "/metrics", clientOptions())).status).toBe(200);
  const closed = once(idle, "close");
  idle.resume();
  await web.close(SHUTDOWN_BUDGET.webMs);
  await closed;
  await waitUntil("it is counted", () => metrics["proxywarden_web_refusals_total handshake"] === 1);
});
