import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { dial, GET, impatient } from "./dialling.ts";
import { secured } from "./secured.ts";

const PLAIN = { "web.yml": "http_server_config: { http2: false }" };

describe("requests", () => {
  test("whose head, or whose body, does not arrive in time are 408; who says nothing is cut as well", async () => {
    const { url, refused } = await impatient((app) => void app.post("/", () => "fine"));
    const late = await Promise.all([
      dial(url, "POST / HTTP/1.1\r\nHost: x\r\nX-Slow: ").heard,
      dial(url, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc").heard,
      dial(url).heard,
    ]);
    for (const answer of late) {
      expect(answer).toMatch(
        /^HTTP\/1\.1 408 Request Timeout\r\n[\s\S]*\r\n\r\nthe request takes too long to arrive\n$/,
      );
    }
    expect(refused).toEqual(["malformed", "malformed", "malformed"]);
  });

  test("with two Host headers, none, or one that is no host are 400 and end the connection", async () => {
    const { web, metrics } = await secured(PLAIN);
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
      const answer = await dial(web.url, head).heard;
      expect([hosts, answer.slice(0, 12)]).toEqual([hosts, "HTTP/1.1 400"]);
      expect(answer).toContain("x-content-type-options: nosniff");
    }
    expect(metrics["proxywarden_web_refusals_total malformed"]).toBe(answers.length);
    for (const host of ["warden.test", "warden.test:9713", "127.0.0.1:9713", "[::1]:9713", "[::1]", ""]) {
      const head = `GET /-/healthy HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      expect([host, (await dial(web.url, head).heard).slice(0, 12)]).toEqual([host, "HTTP/1.1 200"]);
    }
  });

  test("that expect what is not known are 417, with the headers of every answer", async () => {
    const { web, metrics } = await secured(PLAIN);
    const head = "GET /-/healthy HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\n\r\n";
    const answer = await dial(web.url, head).heard;
    expect(answer).toMatch(/^HTTP\/1\.1 417 /);
    expect(answer).toContain("x-content-type-options: nosniff");
    expect(metrics["proxywarden_web_refusals_total malformed"]).toBe(1);
  });
});

describe("a reader that stops reading", () => {
  const BODY = Buffer.alloc(32 * 1_048_576);

  /** Whether a connection on which the whole answer waits is cut before a timer of `deadlineMs` ends. */
  async function fate(stallMs: number, deadlineMs: number): Promise<readonly string[]> {
    const order: string[] = [];
    let serve: (socket: Socket) => void = () => undefined;
    const served = new Promise<Socket>((resolve) => {
      serve = resolve;
    });
    const { url } = await impatient(
      (app) =>
        void app.get("/", (request, reply) => {
          serve(request.raw.socket);
          return reply.send(BODY);
        }),
      { stallMs },
    );
    const { socket } = dial(url, GET("/"));
    socket.pause();
    const connection = await served;
    const cut = new Promise<void>((resolve) => connection.once("close", () => resolve(void order.push("cut"))));
    const late = new Promise<void>((resolve) => setTimeout(() => resolve(void order.push("deadline")), deadlineMs));
    await Promise.all([cut, late]);
    return order;
  }

  test("is cut when it has taken nothing for as long as the limit says, and not only after twice that", async () => {
    expect(await fate(400, 600)).toEqual(["cut", "deadline"]);
  });
});
