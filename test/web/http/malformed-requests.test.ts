import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { getRequest, openConnection, serverWithShortTimeouts } from "./connections.ts";
import { startServerWithFiles } from "./secured-server.ts";

const PLAIN = { "web.yml": "http_server_config: { http2: false }" };

describe("requests", () => {
  test("are answered 408 if their head or body does not arrive in time", async () => {
    const { url, refused } = await serverWithShortTimeouts((app) => void app.post("/", () => "fine"));
    const late = await Promise.all([
      openConnection(url, "POST / HTTP/1.1\r\nHost: x\r\nX-Slow: ").received,
      openConnection(url, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc").received,
      openConnection(url).received,
    ]);
    for (const answer of late) {
      expect(answer).toMatch(
        /^HTTP\/1\.1 408 Request Timeout\r\n[\s\S]*\r\n\r\nthe request was not received in time\n$/,
      );
    }
    expect(refused).toEqual(["malformed", "malformed", "malformed"]);
  });

  test("are answered 400 without exactly one valid Host header", async () => {
    const { web, metrics } = await startServerWithFiles(PLAIN);
    const answers = [
      "",
      "Host: a\r\nHost: b",
      "Host: a\r\nHost: a",
      "Host: a b",
      "Host: a/b",
      "Host: a@b",
      "Host: a:http",
    ];
    for (const hosts of answers) {
      const head = ["GET /-/healthy HTTP/1.1", "Connection: close", ...(hosts === "" ? [] : [hosts]), "", ""].join(
        "\r\n",
      );
      const answer = await openConnection(web.url, head).received;
      expect([hosts, answer.slice(0, 12)]).toEqual([hosts, "HTTP/1.1 400"]);
      expect(answer).toContain("x-content-type-options: nosniff");
    }
    expect(metrics["proxywarden_web_refusals_total malformed"]).toBe(answers.length);
    for (const host of ["proxy.test", "proxy.test:9713", "127.0.0.1:9713", "[::1]:9713", "[::1]", ""]) {
      const head = `GET /-/healthy HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      expect([host, (await openConnection(web.url, head).received).slice(0, 12)]).toEqual([host, "HTTP/1.1 200"]);
    }
  });

  test("with an unknown expectation are answered 417, with the headers of every response", async () => {
    const { web, metrics } = await startServerWithFiles(PLAIN);
    const head = "GET /-/healthy HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\n\r\n";
    const answer = await openConnection(web.url, head).received;
    expect(answer).toMatch(/^HTTP\/1\.1 417 /);
    expect(answer).toContain("x-content-type-options: nosniff");
    expect(metrics["proxywarden_web_refusals_total malformed"]).toBe(1);
  });
});

test("a connection that its client resets is not counted", async () => {
  const asked = Promise.withResolvers<Socket>();
  const { url, refused } = await serverWithShortTimeouts(
    (app) =>
      void app.get("/", (request, reply) => {
        asked.resolve(request.raw.socket);
        return reply.hijack();
      }),
  );
  const { socket } = openConnection(url, getRequest("/"));
  const connection = await asked.promise;
  const closed = new Promise((resolve) => connection.once("close", resolve));
  socket.resetAndDestroy();
  await closed;
  expect(refused).toEqual([]);
});

describe("a client that stops reading", () => {
  const BODY = Buffer.alloc(32 * 1_048_576);

  /** Returns the order in which the connection was cut and a timer of `deadlineMs` ended. */
  async function fate(stallMs: number, deadlineMs: number): Promise<readonly string[]> {
    const order: string[] = [];
    let serve: (socket: Socket) => void = () => undefined;
    const served = new Promise<Socket>((resolve) => {
      serve = resolve;
    });
    const { url } = await serverWithShortTimeouts(
      (app) =>
        void app.get("/", (request, reply) => {
          serve(request.raw.socket);
          return reply.send(BODY);
        }),
      { stallMs },
    );
    const { socket } = openConnection(url, getRequest("/"));
    socket.pause();
    const connection = await served;
    const cut = new Promise<void>((resolve) => connection.once("close", () => resolve(void order.push("cut"))));
    const late = new Promise<void>((resolve) => setTimeout(() => resolve(void order.push("deadline")), deadlineMs));
    await Promise.all([cut, late]);
    return order;
  }

  test("is disconnected after the stall timeout", async () => {
    expect(await fate(400, 600)).toEqual(["cut", "deadline"]);
  });
});
