import { type AddressInfo, connect, type Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { onTestFinished } from "vitest";
import { createHttpServer, type Patience } from "../../../src/web/http/fastify-server.ts";
import { log } from "./test-server.ts";

/** Milliseconds, for tests that wait until it is exhausted. */
const PATIENCE_OF_TESTS = { headMs: 50, requestMs: 100, checkMs: 10, stallMs: 1_000 };
/** A request for a path, as it is sent. */
export const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** A connection to a server, closed with the test; what it hears. */
export function dial(
  url: string,
  say = "",
  localAddress = "127.0.0.1",
): { readonly socket: Socket; readonly heard: Promise<string>; sofar(): string } {
  const { port } = new URL(url);
  let sofar = "";
  const socket = connect({ port: Number(port), host: "127.0.0.1", localAddress }, () => socket.write(say));
  onTestFinished(() => void socket.destroy());
  socket.on("data", (part) => {
    sofar += part.toString("latin1");
  });
  const heard = new Promise<string>((resolve) => {
    socket.on("error", () => undefined).on("close", () => resolve(sofar));
  });
  return { socket, heard, sofar: () => sofar };
}

/** A listening HTTP server without routes, with little patience; `refused` collects the reasons of its refusals. */
export async function impatient(addRoutes: (app: FastifyInstance) => void, patience: Partial<Patience> = {}) {
  const refused: string[] = [];
  const parts = { log, isTrustedProxy: () => false, refused: (reason: string) => void refused.push(reason) };
  const app = createHttpServer(parts, { ...PATIENCE_OF_TESTS, ...patience });
  addRoutes(app);
  await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => app.close());
  return { url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`, refused };
}
