import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type Socket } from "node:net";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { BODY_BYTES_MAX, createTransport } from "../../../src/api-client/transport.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";
import { get, neverAnswers, post, transportTo } from "./http-server.ts";

/** A server that counts requests and returns the given response. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const seen: { method: string; socket: Socket; connection: string | undefined; length: string | undefined }[] = [];
  const server = createHttpServer((request, response) => {
    const { method, socket, headers } = request;
    seen.push({ method: method!, socket, connection: headers.connection, length: headers["content-length"] });
    answer(request, response);
  });
  return { server, seen, url: `http://127.0.0.1:${await listenInTest(server)}` };
}

/** A server of bare sockets. */
async function accept(onSocket: (socket: Socket) => void) {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    onSocket(socket);
  });
  return { server, port: await listenInTest(server), sockets };
}

test("a request that may not be sent any more when its connection is open is not sent", async () => {
  const { seen, url } = await serve((_, response) => void response.end("{}"));
  const transport = transportTo(url);
  let isLeader = true;
  const mayBeSent = () => isLeader;
  const late = [get, post].map((request) => transport.request({ ...request, mayBeSent }, neverAnswers));
  isLeader = false;
  for (const outcome of await Promise.all(late)) {
    expect(outcome).toMatchObject({
      ok: false,
      error: { kind: "unreachable", message: "it was not sent: this daemon's lease has ended" },
    });
  }
  expect(seen).toEqual([]);
  isLeader = true;
  expect(await transport.request({ ...post, mayBeSent }, neverAnswers)).toMatchObject({ ok: true });
});

describe("a POST is sent once", () => {
  test("to a server that closes each connection after its response, with many concurrent requests", async () => {
    const { seen, url } = await serve((_, response) => {
      response.end("{}", () => response.socket?.destroy());
    });
    const transport = transportTo(url);
    // Readings leave connections behind that are closing while the actions go out.
    for (let round = 0; round < 20; round++) {
      await Promise.all([
        transport.request(get, neverAnswers),
        transport.request(post, neverAnswers),
        transport.request(post, neverAnswers),
        transport.request(get, neverAnswers),
      ]);
    }
    expect(seen.filter(({ method }) => method === "POST")).toHaveLength(40);
  });

  test("over a new connection, even if there are idle ones", async () => {
    const { seen, url } = await serve((_, response) => void response.end("{}"));
    const transport = transportTo(url);
    for (const request of [get, get, post, post]) await transport.request(request, neverAnswers);
    expect(seen.map(({ connection }) => connection)).toEqual(["keep-alive", "keep-alive", "close", "close"]);
    const [first, second, third, fourth] = seen.map(({ socket }) => socket);
    expect([first, second]).not.toContain(third);
    expect([first, second, third]).not.toContain(fourth);
  });

  test("to a server that resets the connection after it read the request", async () => {
    const { seen, url } = await serve((request) => {
      request.resume().on("end", () => request.socket.resetAndDestroy());
    });
    const transport = transportTo(url);
    const outcomes = await Promise.all([1, 2, 3].map(() => transport.request(post, neverAnswers)));
    expect(outcomes.map((outcome) => !outcome.ok && outcome.error.kind)).toEqual(["reset", "reset", "reset"]);
    expect(seen).toHaveLength(3);
  });

  test("to a server that closes the connection during its response", async () => {
    const { seen, url } = await serve((_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("{", () => response.destroy());
    });
    const outcome = await transportTo(url).request(post, neverAnswers);
    expect(outcome).toMatchObject({ ok: false, error: { kind: "reset" } });
    expect(seen).toHaveLength(1);
  });

  test("with a Content-Length of 0 if it has no body", async () => {
    const { seen, url } = await serve((_, response) => void response.end());
    const { body: _, ...bare } = post;
    expect(await transportTo(url).request(bare, neverAnswers)).toMatchObject({ ok: true, value: { status: 200 } });
    expect(seen[0]).toMatchObject({ length: "0" });
  });
});

describe("a request that certainly did not reach the service is reported as such", () => {
  test("no listener: unreachable", async () => {
    const { server, port } = await accept(() => {});
    await new Promise<void>((resolve) => void server.close(() => resolve()));
    const outcome = await transportTo(`http://127.0.0.1:${port}`).request(post, neverAnswers);
    expect(outcome).toMatchObject({ ok: false, error: { kind: "unreachable" } });
  });

  test("an unknown host name: unreachable", async () => {
    const outcome = await transportTo("http://nobody.invalid").request(post, neverAnswers);
    expect(outcome).toMatchObject({ ok: false, error: { kind: "unreachable" } });
  });

  test("a server that fails the TLS handshake, or has no TLS: unreachable", async () => {
    const rude = await accept((socket) => void socket.once("data", () => socket.resetAndDestroy()));
    const plain = await accept((socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const postOverTls = (port: number) => transportTo(`https://127.0.0.1:${port}`).request(post, neverAnswers);
    expect(await postOverTls(rude.port)).toMatchObject({ error: { kind: "unreachable" } });
    const message = "the server does not use TLS on this port; use an http:// URL (ERR_SSL_WRONG_VERSION_NUMBER)";
    expect(await postOverTls(plain.port)).toEqual({ ok: false, error: { kind: "unreachable", message } });
  });

  test("canceled during the handshake: fails immediately, and is not sent when the handshake ends", async () => {
    let arrived = () => {};
    const hello = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const { port, sockets } = await accept((socket) => void socket.once("data", () => arrived()));
    const abort = new AbortController();
    const asked = transportTo(`https://127.0.0.1:${port}`).request(post, abort.signal);
    await hello;
    abort.abort();
    expect(await asked).toMatchObject({ ok: false, error: { kind: "aborted", unsent: true } });
    expect(sockets).toHaveLength(1);
  });

  test("canceled before it began: not sent", async () => {
    const { seen, url } = await serve((_, response) => void response.end());
    const outcome = await transportTo(url).request(post, AbortSignal.abort());
    expect(outcome).toMatchObject({ ok: false, error: { kind: "aborted", unsent: true } });
    expect(seen).toHaveLength(0);
  });

  test("canceled after it was sent: not reported as unsent", async () => {
    const abort = new AbortController();
    const { url } = await serve(() => abort.abort());
    const outcome = await transportTo(url).request(post, abort.signal);
    expect(outcome).toEqual({ ok: false, error: { kind: "aborted", message: "the call was canceled" } });
  });

  test("canceled while it waits for a connection: not sent when that opens", async () => {
    let letIn = (_: Socket) => {};
    const first = new Promise<Socket>((resolve) => {
      letIn = resolve;
    });
    const bytes: Buffer[] = [];
    // A proxy that takes its time to open the tunnel.
    const proxy = await accept((socket) => {
      socket.once("data", () => letIn(socket));
    });
    const transport = createTransport({ baseUrl: "https://service.invalid", proxy: `http://127.0.0.1:${proxy.port}` });
    onTestFinished(() => transport.close());
    const abort = new AbortController();
    const asked = transport.request(post, abort.signal);
    const socket = await first;
    abort.abort();
    expect(await asked).toMatchObject({ ok: false, error: { kind: "aborted", unsent: true } });
    const closed = new Promise<void>((resolve) => void socket.once("close", () => resolve()));
    socket.on("data", (chunk) => bytes.push(chunk));
    socket.write("HTTP/1.1 200 OK\r\n\r\n", () => socket.end());
    await closed;
    expect(Buffer.concat(bytes).toString("latin1")).not.toContain("/v1/nodes");
  });
});

test("informational responses are skipped", async () => {
  const { url } = await serve((_, response) => {
    response.writeEarlyHints({ link: "</style.css>; rel=preload" });
    response.writeHead(404, { "x-final": "yes" }).end("{}");
  });
  const outcome = await transportTo(url).request(get, neverAnswers);
  expect(outcome).toMatchObject({ ok: true, value: { status: 404, headers: { "x-final": "yes" } } });
});

describe("compression", () => {
  const encodedAs = (encoding: string, body: Uint8Array) => (_: IncomingMessage, response: ServerResponse) =>
    void response.writeHead(200, { "content-encoding": encoding }).end(body);

  test.each([get, post])("requests and accepts gzip for all methods", async (request) => {
    const asked: unknown[] = [];
    const { url } = await serve((incoming, response) => {
      asked.push(incoming.headers["accept-encoding"]);
      encodedAs("GZIP", gzipSync('{"data":[]}'))(incoming, response);
    });
    const outcome = await transportTo(url).request(request, neverAnswers);
    expect(asked).toEqual(["gzip"]);
    expect(outcome.ok && Buffer.from(outcome.value.body).toString()).toBe('{"data":[]}');
    expect(outcome.ok && outcome.value.headers).not.toHaveProperty("content-encoding");
  });

  test("a body that is too large when decompressed fails", async () => {
    const bomb = gzipSync(Buffer.alloc(BODY_BYTES_MAX + 1));
    expect(bomb.length).toBeLessThan(BODY_BYTES_MAX / 500);
    const { url } = await serve(encodedAs("gzip", bomb));
    expect(await transportTo(url).request(get, neverAnswers)).toMatchObject({
      ok: false,
      error: { kind: "too_large" },
    });
  });

  test("the maximum size of a body may be set", async () => {
    for (const { url } of [
      await serve(encodedAs("gzip", gzipSync(Buffer.alloc(101)))),
      await serve((_, response) => void response.end(Buffer.alloc(101))),
    ]) {
      const outcomes = [100, 101].map((bodyBytesMax) => transportTo(url, { bodyBytesMax }).request(get, neverAnswers));
      expect(await Promise.all(outcomes)).toMatchObject([
        { ok: false, error: { kind: "too_large", message: "the body is larger than 100 bytes" } },
        { ok: true },
      ]);
    }
  });

  test("accepts a body of the maximum size, compressed or not", async () => {
    const whole = Buffer.alloc(BODY_BYTES_MAX);
    for (const { url } of [
      await serve(encodedAs("gzip", gzipSync(whole))),
      await serve((_, response) => void response.end(whole)),
    ]) {
      const outcome = await transportTo(url).request(get, neverAnswers);
      expect(outcome.ok && outcome.value.body.length).toBe(BODY_BYTES_MAX);
    }
  });

  test.each([
    ["br", brotliCompressSync("{}")],
    ["gzip", gzipSync("a longer text").subarray(0, 15)],
    ["gzip, br", gzipSync("{}")],
  ])("a body in %s that can't be decompressed is returned as it is, with its header", async (encoding, bytes) => {
    const { url } = await serve(encodedAs(encoding, bytes));
    const outcome = await transportTo(url).request(post, neverAnswers);
    expect(outcome.ok && outcome.value.headers["content-encoding"]).toBe(encoding);
    expect(outcome.ok && Buffer.compare(outcome.value.body, bytes)).toBe(0);
  });
});

test("the proxy of the environment is used if configured, except for hosts in NO_PROXY", async () => {
  const asked: string[] = [];
  const proxy = await serve((request, response) => {
    asked.push(request.url!);
    response.end("{}");
  });
  const service = await serve((_, response) => void response.end("{}"));
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const name of ["http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY"]) vi.stubEnv(name, undefined);
  vi.stubEnv("HTTP_PROXY", proxy.url);
  const wanted = transportTo("http://service.invalid", { proxyFromEnvironment: true });
  for (const request of [get, post]) expect(await wanted.request(request, neverAnswers)).toMatchObject({ ok: true });
  expect(asked).toEqual(["http://service.invalid/v1/nodes", "http://service.invalid/v1/nodes/node_1/reboot"]);
  expect(await transportTo(service.url, { proxyFromEnvironment: false }).request(get, neverAnswers)).toMatchObject({
    ok: true,
  });
  vi.stubEnv("NO_PROXY", "127.0.0.1");
  expect(await transportTo(service.url, { proxyFromEnvironment: true }).request(get, neverAnswers)).toMatchObject({
    ok: true,
  });
  expect(asked).toHaveLength(2);
  expect(service.seen).toHaveLength(2);
});
