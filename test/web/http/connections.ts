import { type AddressInfo, connect, type Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { onTestFinished } from "vitest";
import { createHttpServer, type HttpTimeouts } from "../../../src/web/http/fastify-server.ts";
import { log } from "./test-server.ts";

/** Milliseconds, for tests that wait for a timeout. */
const SHORT_TIMEOUTS = { headMs: 50, requestMs: 100, checkMs: 10, stallMs: 1_000 };
/** Returns the text of a GET request. */
export const getRequest = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** Opens a connection, which is closed when the test ends. `received` resolves to all received text when it closes. */
export function openConnection(
  url: string,
  request = "",
  localAddress = "127.0.0.1",
): { readonly socket: Socket; readonly received: Promise<string>; sofar(): string } {
  const { port } = new URL(url);
  let sofar = "";
  const socket = connect({ port: Number(port), host: "127.0.0.1", localAddress }, () => socket.write(request));
  onTestFinished(() => void socket.destroy());
  socket.on("data", (part) => {
    sofar += part.toString("latin1");
  });
  const received = new Promise<string>((resolve) => {
    socket.on("error", () => undefined).on("close", () => resolve(sofar));
  });
  return { socket, received, sofar: () => sofar };
}

/** Starts an HTTP server with short timeouts; `refused` collects the reasons of its refusals. */
export async function serverWithShortTimeouts(
  addRoutes: (app: FastifyInstance) => void,
  timeouts: Partial<HttpTimeouts> = {},
) {
  const refused: string[] = [];
  const deps = {
    log,
    isTrustedProxy: () => false,
    countRefusal: (reason: string) => void refused.push(reason),
  };
  const app = createHttpServer(deps, null, { ...SHORT_TIMEOUTS, ...timeouts });
  addRoutes(app);
  await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => app.close());
  return { url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`, refused };
}
