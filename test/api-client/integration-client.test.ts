import { createServer as createTlsServer } from "node:https";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createIntegrationClient, type IntegrationAccess } from "../../src/api-client/integration-client.ts";
import type { Secret } from "../../src/model/ports.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { fixedKey } from "../harness/daemon/virtual-daemon.ts";
import { createSelfSigned } from "../web/http/tls/certificate-authority.ts";
import { neverAnswers, startHttpServer } from "./transport/http-server.ts";

function peerOf(access: IntegrationAccess) {
  const clock = createVirtualClock(0);
  const peer = createIntegrationClient({ access, clock, agent: "proxywarden/test" });
  onTestFinished(() => peer.close());
  return { clock, peer };
}

const query = { method: "GET", path: "/api/v1/query?query=up" } as const;
const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

/** A secret whose file holds another value once it is read again. */
function renewable(old: string, renewed: string): Secret {
  let value = old;
  return {
    value: () => value,
    refresh() {
      value = renewed;
      return { ok: true, value: true };
    },
  };
}

test("appends the path of the request to that of the URL, and sends a User-Agent", async () => {
  const { url, requests: seen } = await startHttpServer(() => ({ body: "{}" }));
  const { peer } = peerOf({ url: `${url}/prometheus/` });
  expect(await peer.request(query, neverAnswers)).toMatchObject({ ok: true, value: { status: 200 } });
  expect(seen[0]).toMatchObject({ method: "GET", url: "/prometheus/api/v1/query?query=up" });
  expect(seen[0]!.headers).toMatchObject({ "user-agent": "proxywarden/test", accept: "application/json" });
  expect(seen[0]!.headers).not.toHaveProperty("authorization");
});

describe("credentials", () => {
  test.each<[string, Partial<IntegrationAccess>, string]>([
    [
      "basic_auth, in any alphabet",
      { credentials: { kind: "basic", username: "ü", secret: fixedKey("p:1") } },
      basic("ü:p:1"),
    ],
    ["authorization", { credentials: { kind: "authorization", scheme: "Bearer", secret: fixedKey("t") } }, "Bearer t"],
  ])("%s becomes the header", async (_, access, header) => {
    const { url, requests: seen } = await startHttpServer(() => ({ body: "{}" }));
    await peerOf({ url, ...access }).peer.request(query, neverAnswers);
    expect(seen[0]!.headers.authorization).toBe(header);
  });

  test("a user and a password in the URL become basic auth", async () => {
    const { url, requests: seen } = await startHttpServer(() => ({ body: "{}" }));
    await peerOf({ url: url.replace("http://", "http://me:p%40ss@") }).peer.request(query, neverAnswers);
    await peerOf({ url: url.replace("http://", "http://me:100%@") }).peer.request(query, neverAnswers);
    expect(seen.map(({ headers }) => headers.authorization)).toEqual([basic("me:p@ss"), basic("me:100%")]);
  });

  test("after a 401 the secret is read again, and the request is retried only if it was renewed", async () => {
    const { url, requests: seen } = await startHttpServer(({ headers }) => ({
      status: headers.authorization === "Bearer new" ? 200 : 401,
    }));
    const credentials = { kind: "authorization", scheme: "Bearer", secret: renewable("old", "new") } as const;
    expect(await peerOf({ url, credentials }).peer.request(query, neverAnswers)).toMatchObject({
      value: { status: 200 },
    });
    expect(seen).toHaveLength(2);
    const stale = { ...credentials, secret: fixedKey("old") };
    expect(await peerOf({ url, credentials: stale }).peer.request(query, neverAnswers)).toMatchObject({
      value: { status: 401 },
    });
    expect(seen).toHaveLength(3);
  });
});

describe("a request", () => {
  test("fails after ten seconds without a response", async () => {
    const { url, waitForRequests: came } = await startHttpServer(() => null);
    const { peer, clock } = peerOf({ url });
    const asked = peer.request(query, neverAnswers);
    await came(1);
    await clock.advance(10_000);
    expect(await asked).toEqual({
      ok: false,
      error: expect.objectContaining({ message: "no complete response within 10 s" }),
    });
  });

  test("fails when the caller's signal aborts", async () => {
    const { url, waitForRequests: came } = await startHttpServer(() => null);
    const abort = new AbortController();
    const asked = peerOf({ url }).peer.request(query, abort.signal);
    await came(1);
    abort.abort();
    expect(await asked).toEqual({ ok: false, error: expect.objectContaining({ message: "the call was canceled" }) });
  });

  test("fails with the reason if there is no listener", async () => {
    const asked = await peerOf({ url: "http://127.0.0.1:1" }).peer.request(query, neverAnswers);
    expect(asked).toEqual({
      ok: false,
      error: expect.objectContaining({ message: expect.stringContaining("ECONNREFUSED") }),
    });
  });

  test.each(["ftp://127.0.0.1/", "no URL at all"])(
    "to %j, which is not a URL, fails with an error that does not quote it",
    async (url) => {
      const asked = await peerOf({ url: fixedKey(url) }).peer.request(query, neverAnswers);
      expect(asked).toEqual({
        ok: false,
        error: expect.objectContaining({ message: "its URL is not an http or https URL" }),
      });
    },
  );

  test("is sent twice if it is a GET and the server resets the connection, and once if it is a POST", async () => {
    const { url, requests: seen } = await startHttpServer((_, number) => (number % 2 === 1 ? "reset" : {}));
    const { peer } = peerOf({ url });
    expect(await peer.request(query, neverAnswers)).toMatchObject({ ok: true });
    expect(seen).toHaveLength(2);
    expect(await peer.request({ method: "POST", path: "/", body: "[]" }, neverAnswers)).toMatchObject({ ok: false });
    expect(seen).toHaveLength(3);
  });

  test("does not follow a redirect", async () => {
    const { url, requests: seen } = await startHttpServer(() => ({ status: 302 }));
    expect(await peerOf({ url }).peer.request(query, neverAnswers)).toMatchObject({ value: { status: 302 } });
    expect(seen).toHaveLength(1);
  });
});

describe("over TLS", () => {
  let [cert, key] = ["", ""];
  beforeAll(() => {
    ({ cert, key } = createSelfSigned("DNS:peer.test"));
  });

  const startTls = async () => {
    const options = { cert, key, ca: cert, requestCert: true, rejectUnauthorized: true };
    const server = await startHttpServer(
      () => ({ body: "{}" }),
      (handler) => createTlsServer(options, handler) as never,
    );
    return { ...server, url: server.url.replace("http:", "https:") };
  };
  const ours = () => ({ ca: fixedKey(cert), cert: fixedKey(cert), key: fixedKey(key), serverName: "peer.test" });

  test("checks the server's certificate by CA and name, and sends the client certificate", async () => {
    const { url } = await startTls();
    expect(await peerOf({ url, tls: ours() }).peer.request(query, neverAnswers)).toMatchObject({ ok: true });
  });

  test("reports a wrong CA, name or client certificate, and sends nothing", async () => {
    const { url, requests: seen } = await startTls();
    const { ca, cert: shown, key: ourKey } = ours();
    const wrong = [
      { tls: { cert: shown, key: ourKey, serverName: "peer.test" }, why: /: self-signed certificate$/ },
      { tls: { ca, cert: shown, key: ourKey, serverName: "other.test" }, why: /other\.test/ },
      { tls: { ca, serverName: "peer.test" }, why: /certificate|closed|reset/i },
      { tls: { ca: fixedKey("garbage"), serverName: "peer.test" }, why: /./ },
    ];
    for (const { tls, why } of wrong) {
      const asked = await peerOf({ url, tls }).peer.request(query, neverAnswers);
      expect(asked).toEqual({ ok: false, error: expect.objectContaining({ message: expect.stringMatching(why) }) });
    }
    expect(seen).toHaveLength(0);
  });

  test("accepts any certificate with insecure_skip_verify, and uses a renewed client certificate from the next request on", async () => {
    const { url } = await startTls();
    const shown = renewable("garbage", cert);
    const { peer } = peerOf({ url, tls: { cert: shown, key: fixedKey(key), insecureSkipVerify: true } });
    expect(await peer.request(query, neverAnswers)).toMatchObject({ ok: false });
    shown.refresh();
    expect(await peer.request(query, neverAnswers)).toMatchObject({ ok: true });
  });
});
