import { createServer, type Socket } from "node:net";
import { createIntegrationClient } from "../../../src/api-client/integration-client.ts";
import { createTransport } from "../../../src/api-client/transport.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { listen } from "../../harness/servers/free-port.ts";
import { bytesOf, mutatedText, pick, randomBytes } from "../mutation.ts";
import { assert, type FuzzTarget } from "../target.ts";

interface Input {
  readonly client: "service" | "integration";
  readonly method: "GET" | "POST";
  /** Bytes that the server sends before it closes the connection, as Latin-1. */
  readonly reply: string;
}

const body = '{"data":[],"pagination":{"page":1,"limit":50,"total":0}}';
const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const head = (...headers: string[]) => ["HTTP/1.1 200 OK", ...headers, "", ""].join("\r\n");

const seeds = [
  head("Content-Type: application/json", `Content-Length: ${body.length}`, "X-RateLimit-Limit: 100") + body,
  head("Content-Type: application/json", "Transfer-Encoding: chunked", "Date: Sun, 01 Mar 2026 00:00:00 GMT") + chunked,
  head("Content-Encoding: gzip", "Transfer-Encoding: chunked") + chunked,
  head("Content-Encoding: br", `Content-Length: ${body.length}`) + body,
  `HTTP/1.1 100 Continue\r\n\r\n${head("Connection: close")}${body}`,
  "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 204 No Content\r\n\r\n",
];

const words = [
  ...["\r\n", "\n", "\r", "\0", ":", " ", "\r\n\r\n", "HTTP/1.1 ", "HTTP/2", "HTTP/0.9", "101", "000", "99999", "-1"],
  ...["Content-Length: 5\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\n"],
  ...["Connection: upgrade\r\nUpgrade: h2c\r\n", "Content-Encoding: gzip, gzip, gzip, br\r\n", "ffffffffffffffff\r\n"],
  ...["X: ".concat("y".repeat(20_000), "\r\n"), "Set-Cookie: a\r\n".repeat(200), "\u001f\u008b\b\0\0\0\0\0", "é"],
];

/** Raw bytes of a server, read by the transports of the service and of integrations over real sockets. */
export async function createTarget(): Promise<FuzzTarget<Input>> {
  let reply: Buffer = Buffer.alloc(0);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.once("data", () => socket.end(reply));
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  const transport = createTransport({ baseUrl: url });
  const integration = createIntegrationClient({
    access: { url },
    clock: systemClock,
    agent: "proxywarden/fuzz",
  });
  return {
    generate: (random) => ({
      client: pick(random, ["service", "integration"] as const),
      method: pick(random, ["GET", "GET", "POST"] as const),
      reply: random() < 0.05 ? randomBytes(random, 300) : mutatedText(random, pick(random, seeds), words),
    }),
    async run({ client, method, reply: next }) {
      reply = bytesOf(next);
      const { signal } = new AbortController();
      if (client === "integration") {
        const answer = await integration.request({ method, path: "/api/v1/query", body: "{}" }, signal);
        if (!answer.ok) assert(answer.error.message !== "", "a failure has no message");
        return;
      }
      const answer = await transport.request({ method, path: "/v1/nodes", headers: {} }, signal);
      if (!answer.ok) assert(answer.error.kind !== "aborted", "the request was aborted without an abort signal");
    },
    async close() {
      await Promise.all([transport.close(), integration.close()]);
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
