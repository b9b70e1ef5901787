import { createServer, type IncomingMessage } from "node:http";
import { createSecureServer } from "node:http2";
import { createConnection, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { listenInTest } from "../../harness/servers/listening-server.ts";
import { createAuthority } from "../../web/http/tls/certificate-authority.ts";
import { get, neverAnswers, post, transportTo } from "./http-server.ts";

/** Starts a TLS server that offers HTTP/2 and HTTP/1.1, and records the version of each request. */
async function serveHttp2() {
  const versions: string[] = [];
  const authority = createAuthority("authority");
  const { cert, key } = authority.issue("IP:127.0.0.1");
  const server = createSecureServer({ cert, key, allowHTTP1: true }, (incoming, response) => {
    versions.push(incoming.httpVersion);
    response.end("{}");
  });
  return { versions, ca: authority.cert, url: `https://127.0.0.1:${await listenInTest(server)}` };
}

/** Starts an HTTP proxy that opens tunnels, and answers other requests itself. It records the ports of their clients. */
async function serveProxy() {
  const clientPorts: number[] = [];
  const server = createServer((incoming, response) => {
    clientPorts.push(incoming.socket.remotePort!);
    response.end("{}");
  });
  server.on("connect", (incoming: IncomingMessage, client: Socket) => {
    const upstream = createConnection(Number(incoming.url!.split(":").at(-1)), "127.0.0.1", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      upstream.pipe(client).pipe(upstream);
    });
    client.on("error", () => upstream.destroy());
    upstream.on("error", () => client.destroy());
  });
  return { clientPorts, url: `http://127.0.0.1:${await listenInTest(server)}` };
}

describe("requests use HTTP/1.1 although the server offers HTTP/2", () => {
  test("directly", async () => {
    const { versions, ca, url } = await serveHttp2();
    const transport = transportTo(url, { ca });
    for (const request of [get, post])
      expect(await transport.request(request, neverAnswers)).toMatchObject({ ok: true });
    expect(versions).toEqual(["1.1", "1.1"]);
  });

  test("through the tunnel of a proxy", async () => {
    const { versions, ca, url } = await serveHttp2();
    const transport = transportTo(url, { ca, proxy: (await serveProxy()).url });
    for (const request of [get, post])
      expect(await transport.request(request, neverAnswers)).toMatchObject({ ok: true });
    expect(versions).toEqual(["1.1", "1.1"]);
  });
});

test("a POST over a proxy uses a new connection to the proxy", async () => {
  const proxy = await serveProxy();
  const transport = transportTo("http://service.invalid", { proxy: proxy.url });
  for (const request of [get, get, post, post]) {
    expect(await transport.request(request, neverAnswers)).toMatchObject({ ok: true });
  }
  const [first, second, third, fourth] = proxy.clientPorts;
  expect([first, second]).not.toContain(third);
  expect([first, second, third]).not.toContain(fourth);
});
