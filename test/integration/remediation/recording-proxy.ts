import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { listen } from "../../harness/servers/free-port.ts";

/** A POST as it arrived at the proxy. */
export interface PostRequest {
  readonly path: string;
  readonly body: string;
  /** Names the program that sent it. */
  readonly userAgent: string;
}

/** Callback that runs while a POST is under way. */
export interface PostHooks {
  /** Called when the POST arrives. It is forwarded if this resolves to true, and never if it resolves to false. */
  arrived?(post: PostRequest): Promise<boolean>;
  /** Called when the service has answered. The answer is forwarded once this resolves. */
  answered?(post: PostRequest): Promise<void>;
}

/** A proxy before the service that records POSTs. */
export interface ServiceProxy {
  readonly url: string;
  /** All POSTs, in order. */
  readonly postRequests: readonly PostRequest[];
  /** Replaces the hooks. */
  setHooks(hooks: PostHooks): void;
  /** Closes all connections. */
  close(): void;
}

/** Starts a proxy before the service at `serviceUrl`. */
export async function startServiceProxy(serviceUrl: string): Promise<ServiceProxy> {
  const posts: PostRequest[] = [];
  let hooks: PostHooks = {};

  async function pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method, headers, url: path = "/" } = incoming;
    const post = method === "POST" ? { path, body: body.toString(), userAgent: headers["user-agent"] ?? "" } : null;
    if (post !== null) {
      posts.push(post);
      if ((await hooks.arrived?.(post)) === false) return;
    }
    const onward = request(serviceUrl + path, { method, headers }, (answer) => {
      const held = post === null ? Promise.resolve() : (hooks.answered?.(post) ?? Promise.resolve());
      void held.then(() => {
        // All headers, such as Date, are the service's.
        response.sendDate = false;
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
    });
    onward.on("error", () => response.destroy());
    onward.end(body);
  }

  const server = createServer((incoming, response) => {
    pass(incoming, response).catch(() => response.destroy());
  });
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    postRequests: posts,
    setHooks(next) {
      hooks = next;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
