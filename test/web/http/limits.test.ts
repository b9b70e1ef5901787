import { Agent } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { inlineSecret } from "../../../src/platform/secret-file.ts";
import { waitUntil } from "../../integration/wait-until.ts";
import { getRequest, openConnection } from "./connections.ts";
import { sendHttpRequest, startServerWithFiles } from "./secured-server.ts";
import { adminOperators } from "./test-server.ts";

const PLAIN = { "web.yml": "http_server_config: { http2: false }" };

describe("requests", () => {
  test("answers 429 and closes the connection when a client sends more than 100 a second after a burst of 1000", async () => {
    const { web, clock, metrics } = await startServerWithFiles(PLAIN);
    const agent = new Agent({ keepAlive: true, maxSockets: 20 });
    onTestFinished(() => agent.destroy());
    const answers = await Promise.all(Array.from({ length: 1_010 }, () => sendHttpRequest(web, "/none", { agent })));
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(1_000);
    expect(refused).toHaveLength(10);
    expect(refused[0]).toMatchObject({ text: "more than 100 requests per second from one address\n" });
    expect(refused[0]!.headers).toMatchObject({ "retry-after": "1", connection: "close", "x-frame-options": "DENY" });
    expect(metrics["proxywarden_web_refusals_total rate"]).toBe(10);
    // Scrapes and probes of the same client are counted separately.
    for (const path of ["/metrics", "/-/healthy"]) expect((await sendHttpRequest(web, path)).status).toBe(200);
    clock.nowMs += 10;
    expect([(await sendHttpRequest(web, "/none")).status, (await sendHttpRequest(web, "/none")).status]).toEqual([
      404, 429,
    ]);
  });

  test("limits all clients together to rate_limit, except health probes", async () => {
    const { web, clock } = await startServerWithFiles({ "web.yml": "rate_limit: { interval: 1s, burst: 2 }" });
    const statuses = async (path: string, times: number) => {
      const all: number[] = [];
      for (let time = 0; time < times; time++) all.push((await sendHttpRequest(web, path)).status);
      return all;
    };
    expect(await statuses("/metrics", 3)).toEqual([200, 200, 429]);
    expect(await statuses("/-/healthy", 3)).toEqual([200, 200, 200]);
    clock.nowMs += 1_000;
    expect(await statuses("/metrics", 2)).toEqual([200, 429]);
    const message = "more requests than rate_limit in the web configuration allows for all clients together";
    expect(await sendHttpRequest(web, "/metrics")).toMatchObject({ text: `${message}\n` });
    // The code is the same as after too many wrong passwords or tokens.
    const { text } = await sendHttpRequest(web, "/api/v1/status");
    expect(JSON.parse(text)).toEqual({ error: "too_many_attempts", message });
  });

  test("answers 431 for headers over 16 KiB and 413 for a body over 8 KiB", async () => {
    const { web, metrics } = await startServerWithFiles(PLAIN);
    const head = await sendHttpRequest(web, "/", { headers: { "x-long": "x".repeat(16_385) } });
    expect(head).toMatchObject({ status: 431, text: "the request headers exceed 16384 bytes\n" });
    expect(head.headers).toMatchObject({ "x-content-type-options": "nosniff", "x-frame-options": "DENY" });
    const body = await sendHttpRequest(web, "/-/reload", { method: "POST" }, "x".repeat(8_193));
    expect(body).toMatchObject({ status: 413, text: "the body exceeds 8192 bytes\n" });
    expect(metrics["proxywarden_web_refusals_total malformed"]).toBe(1);
  });

  test("answers 413 in JSON for a command with a body over 8 KiB", async () => {
    const { web } = await startServerWithFiles(PLAIN, {
      deps: { operators: () => adminOperators(inlineSecret("sesame")) },
    });
    const headers = { authorization: "Bearer sesame" };
    const answer = await sendHttpRequest(web, "/api/v1/pause", { method: "POST", headers }, "x".repeat(8_193));
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.text).message).toBe("the body exceeds 8192 bytes");
  });

  test("answers 400 with a line of text for what is not HTTP", async () => {
    const { web } = await startServerWithFiles(PLAIN);
    const answer = await openConnection(web.url, "\x16\x03\x01 hello\r\n\r\n").received;
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*\r\n\r\nmalformed HTTP request\n$/);
    expect(answer).toContain("x-content-type-options: nosniff");
  });

  test("closes the connection after a path that can't be decoded", async () => {
    const { web, metrics } = await startServerWithFiles(PLAIN);
    const answer = await sendHttpRequest(web, "/%zz");
    expect(answer).toMatchObject({ status: 400, headers: { connection: "close", "x-frame-options": "DENY" } });
    expect(metrics["proxywarden_web_refusals_total malformed"]).toBe(1);
  });
});

describe("connections", () => {
  test("closes a client's 65th connection until one of the others is closed", async () => {
    const { web, metrics } = await startServerWithFiles(PLAIN);
    const held = Array.from({ length: 64 }, () => openConnection(web.url, getRequest("/-/healthy")));
    await waitUntil("all are answered", () => held.every(({ sofar }) => sofar().includes("healthy")));
    expect(await openConnection(web.url, getRequest("/-/healthy")).received).toBe("");
    expect(metrics["proxywarden_web_refusals_total connections"]).toBe(1);
    held[0]!.socket.destroy();
    await waitUntil("there is a place again", async () => {
      const answer = openConnection(web.url, "GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
      return (await answer.received).startsWith("HTTP/1.1 200");
    });
  });

  test("accepts 256 connections of all clients together", async () => {
    const { web } = await startServerWithFiles(PLAIN);
    const clients = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
    for (const client of clients) {
      const held = Array.from({ length: 64 }, () => openConnection(web.url, getRequest("/-/healthy"), client));
      await waitUntil("all are answered", () => held.every(({ sofar }) => sofar().startsWith("HTTP/1.1 200")));
    }
    expect(await openConnection(web.url, getRequest("/-/healthy"), "127.0.0.5").received).toBe("");
  });

  test("closes a client's new connections over 50 a second after a burst of 500", async () => {
    const { web, clock } = await startServerWithFiles(PLAIN);
    const isServed = () =>
      sendHttpRequest(web, "/-/healthy").then(
        () => true,
        () => false,
      );
    for (let time = 0; time < 500; time++) await isServed();
    expect(await isServed()).toBe(false);
    clock.nowMs += 20;
    expect([await isServed(), await isServed()]).toEqual([true, false]);
  });
});

describe("responses", () => {
  test("have the security headers and no Server header, regardless of their status", async () => {
    const { web } = await startServerWithFiles(PLAIN);
    const answers = [
      await sendHttpRequest(web, "/metrics"),
      await sendHttpRequest(web, "/"),
      await sendHttpRequest(web, "/api/v1/status"),
      await sendHttpRequest(web, "/none"),
      await sendHttpRequest(web, "/%zz"),
      await sendHttpRequest(web, "/metrics", { method: "DELETE" }),
      await sendHttpRequest(web, "/-/healthy", { method: "HEAD" }),
    ];
    for (const [index, { headers }] of answers.entries()) {
      expect(headers).toMatchObject({
        // Browsers cache the page and revalidate it.
        "cache-control": index === 1 ? "no-cache" : "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
      });
      expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
      expect(headers).not.toHaveProperty("server");
      expect(headers).not.toHaveProperty("x-powered-by");
    }
  });

  test("have the configured headers; the page keeps its own content security policy", async () => {
    const headers = {
      "Content-Security-Policy": "default-src 'self'",
      "X-Frame-Options": "sameorigin",
      "X-Content-Type-Options": "nosniff",
      "X-XSS-Protection": "",
      "Strict-Transport-Security": "max-age=60",
    };
    const { web } = await startServerWithFiles({ "web.yml": JSON.stringify({ http_server_config: { headers } }) });
    for (const path of ["/metrics", "/none", "/api/v1/status"]) {
      const answer = await sendHttpRequest(web, path);
      expect(answer.headers).toMatchObject({
        "content-security-policy": "default-src 'self'",
        "x-frame-options": "sameorigin",
        "strict-transport-security": "max-age=60",
        "referrer-policy": "no-referrer",
      });
      expect(answer.headers).not.toHaveProperty("x-xss-protection");
    }
    expect((await sendHttpRequest(web, "/")).headers["content-security-policy"]).toContain("default-src 'none'");
  });
});
