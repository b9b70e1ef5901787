import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import { createTransport, type TransportOptions } from "../../../src/api-client/transport.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";

/** A request as it came. */
export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Response of the server. Null means it never responds, and `reset` that it breaks the connection. */
export type HttpAnswer =
  | { readonly status?: number; readonly headers?: Readonly<Record<string, string[]>>; readonly body?: string }
  | "reset"
  | null;

/** A real server on the loopback that ends with the test. `came` resolves when so many requests are there. */
export interface HttpServer {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  waitForRequests(requests: number): Promise<void>;
}

/** Starts one; `answer` is given each request and how many came so far. */
export async function startHttpServer(
  answer: (request: ReceivedRequest, number: number) => HttpAnswer,
  create: (handler: (request: IncomingMessage, response: ServerResponse) => void) => Server = createServer,
): Promise<HttpServer> {
  const seen: ReceivedRequest[] = [];
  const waiting: { readonly requests: number; readonly resolve: () => void }[] = [];
  const server = create((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method, url, headers } = request;
      const came = { method: method!, url: url!, headers, body: Buffer.concat(chunks).toString("utf8") };
      seen.push(came);
      for (const request of waiting) if (seen.length >= request.requests) request.resolve();
      const given = answer(came, seen.length);
      if (given === "reset") request.socket.resetAndDestroy();
      else if (given !== null) response.writeHead(given.status ?? 200, given.headers).end(given.body ?? "");
    });
  });
  return {
    url: `http://127.0.0.1:${await listenInTest(server)}`,
    requests: seen,
    waitForRequests: (requests) =>
      new Promise((resolve) => {
        if (seen.length >= requests) resolve();
        else waiting.push({ requests, resolve });
      }),
  };
}

export const neverAnswers = new AbortController().signal;

/** A request of the list of nodes. */
export const get = { method: "GET", path: "/v1/nodes", headers: {} } as const;
/** A request of an action. */
export const post = { method: "POST", path: "/v1/nodes/node_1/reboot", headers: {}, body: '{"force":true}' } as const;

/** Creates a transport that is closed when the test ends. */
export function transportTo(baseUrl: string, options: Partial<TransportOptions> = {}): Transport {
  const transport = createTransport({ baseUrl, ...options });
  onTestFinished(() => transport.close());
  return transport;
}
