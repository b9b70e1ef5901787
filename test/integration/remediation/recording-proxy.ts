import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A POST as it arrived at the service's door. */
export interface PostRequest {
  readonly path: string;
  readonly body: string;
}

/** What a test does while a POST is on its way. */
export interface PostHooks {
  /** It arrived. It goes on to the service once this is over; false: it never does. */
  arrived?(post: PostRequest): Promise<boolean>;
  /** The service has carried it out, and its answer waits here until this is over. */
  answered?(post: PostRequest): Promise<void>;
}

/** A gate before the service, through which all calls pass. */
export interface ServiceProxy {
  readonly url: string;
  /** Every POST that came, in order. */
  readonly postRequests: readonly PostRequest[];
  /** From now on. */
  setHooks(delays: PostHooks): void;
}

/** Puts a gate before the service at `serviceUrl`; it ends with the test. */
export async function startServiceProxy(serviceUrl: string): Promise<ServiceProxy> {
  const posts: PostRequest[] = [];
  let delays: PostHooks = {};

  async function pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method, headers, url: path = "/" } = incoming;
    const post = method === "POST" ? { path, body: body.toString() } : null;
    if (post !== null) {
      posts.push(post);
      if ((await delays.arrived?.(post)) === false) return;
    }
    const onward = request(serviceUrl + path, { method, headers }, (answer) => {
      const held = post === null ? Promise.resolve() : (delays.answered?.(post) ?? Promise.resolve());
      void held.then(() => {
        // Dates and the like are the service's own, to the letter.
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
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    postRequests: posts,
    setHooks(next) {
      delays = next;
    },
  };
}
