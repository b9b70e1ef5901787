import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/shutdown.ts";
import type { Clock } from "../../../src/model/ports.ts";
import { nextTurn } from "../../../src/platform/event-loop.ts";
import { listenProblem } from "../../../src/web/http/listen-address.ts";
import type { WebDeps, WebServerOptions } from "../../../src/web/http/route.ts";
import { startWebServer, type WebServer } from "../../../src/web/http/server.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { getRequest, openConnection } from "./connections.ts";
import {
  defaultDeps,
  fetchFrom,
  ignoredMetrics,
  log,
  metricsBody,
  startTestServer,
  stoppedClock,
} from "./test-server.ts";

/** A clock on which sleeps end immediately. */
const instantClock: Pick<Clock, "sleep" | "monotonic"> = { ...stoppedClock, sleep: () => Promise.resolve() };

/** Sends a GET and returns the response as soon as its headers arrived. */
async function open(web: WebServer, path: string): Promise<IncomingMessage> {
  const request = httpRequest(web.url + path, { agent: false }).end();
  const [response] = await once(request, "response");
  return response;
}

/** Starts a server whose scrapes run until `scrape.resolve` is called. `asked` resolves when one has begun. */
async function startServerWithOpenScrape(clock?: typeof instantClock) {
  const scrape = Promise.withResolvers<Awaited<ReturnType<WebDeps["scrape"]>>>();
  const asked = Promise.withResolvers<void>();
  const deps: Partial<WebDeps> = {
    scrape: () => {
      asked.resolve();
      return scrape.promise;
    },
  };
  return { web: await startTestServer(deps, clock), asked, scrape };
}

describe("an unknown route or method", () => {
  test.each([
    ["POST", "/metrics", "GET, HEAD"],
    ["PUT", "/-/healthy", "GET, HEAD"],
    ["GET", "/-/reload", "POST"],
    ["DELETE", "/", "GET, HEAD"],
    ["POST", "/api/v1/nodes", "GET, HEAD"],
    ["PATCH", "/api/v1/nodes/node_1", "GET, HEAD"],
    ["PROPFIND", "/metrics", "GET, HEAD"],
  ])("%s %s is answered 405 with the allowed methods", async (method, path, allow) => {
    const response = await fetchFrom(await startTestServer(), path, { method });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe(allow);
    const json = path.startsWith("/api/");
    expect(response.headers.get("content-type")).toContain(json ? "application/json" : "text/plain");
  });

  test("is answered 404 in plain text, a malformed path 400", async () => {
    const web = await startTestServer();
    for (const method of ["GET", "QUERY"])
      expect(await fetchFrom(web, "/none", { method })).toMatchObject({ status: 404 });
    expect((await fetchFrom(web, "/none")).headers.get("content-type")).toContain("text/plain");
    expect((await fetchFrom(web, "/%zz")).status).toBe(400);
    expect((await fetchFrom(web, "/%zz")).headers.get("x-content-type-options")).toBe("nosniff");
    expect((await fetchFrom(web, "/api/v1/nodes/%zz")).status).toBe(400);
  });

  test("a body over 8 KiB is answered 413, headers over 16 KiB 431", async () => {
    const web = await startTestServer();
    expect((await fetchFrom(web, "/-/reload", { method: "POST", body: "x".repeat(8_193) })).status).toBe(413);
    expect((await fetchFrom(web, "/", { headers: { "x-long": "x".repeat(16_385) } })).status).toBe(431);
  });
});

describe("closing", () => {
  test("lets a running scrape finish", async () => {
    const { web, asked, scrape } = await startServerWithOpenScrape();
    const response = open(web, "/metrics");
    await asked.promise;
    const closed = web.close(SHUTDOWN_BUDGET.webMs);
    scrape.resolve(await defaultDeps.scrape({}));
    expect(await text(await response)).toBe(metricsBody.toString());
    await closed;
  });

  test("still answers a request that follows a running one on its connection", async () => {
    const { web, asked, scrape } = await startServerWithOpenScrape();
    const { socket, received } = openConnection(web.url, getRequest("/metrics"));
    await asked.promise;
    const closed = web.close(SHUTDOWN_BUDGET.webMs);
    socket.write(getRequest("/api/v1/budget"));
    await nextTurn();
    await nextTurn();
    scrape.resolve(await defaultDeps.scrape({}));
    expect(await received).toMatch(/{"month":1}$/);
    await closed;
  });

  test("ends idle connections immediately", async () => {
    const web = await startTestServer();
    const { hostname, port } = new URL(web.url);
    const socket = connect(Number(port), hostname);
    socket.write("GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "data");
    const ended = once(socket, "close");
    socket.resume();
    await web.close(SHUTDOWN_BUDGET.webMs);
    await ended;
  });

  test("disconnects running requests after the timeout", async () => {
    const { web, asked } = await startServerWithOpenScrape(instantClock);
    const response = open(web, "/metrics");
    await asked.promise;
    await Promise.all([expect(response).rejects.toThrow("socket hang up"), web.close(SHUTDOWN_BUDGET.webMs)]);
  });

  test("disconnects a running request whose client reused the port of a connection that it had reset", async () => {
    const { web, asked } = await startServerWithOpenScrape(instantClock);
    const { hostname: host, port } = new URL(web.url);
    const reset = connect({ host, port: Number(port) });
    reset.write(getRequest("/-/healthy"));
    await once(reset, "data");
    const { localPort } = reset;
    reset.resetAndDestroy();
    const running = connect({ host, port: Number(port), localPort: localPort! });
    running.on("error", () => undefined).write(getRequest("/metrics"));
    await asked.promise;
    await Promise.all([once(running, "close"), web.close(SHUTDOWN_BUDGET.webMs)]);
  });

  test("refuses new connections", async () => {
    const web = await startTestServer();
    await web.close(SHUTDOWN_BUDGET.webMs);
    await expect(fetchFrom(web, "/-/healthy")).rejects.toThrow();
  });
});

describe("an address", () => {
  const startOn = (host: string, port: number, metrics: WebServerOptions["metrics"] = ignoredMetrics) =>
    startWebServer({ host, port, deps: defaultDeps, log, clock: stoppedClock, metrics });

  test("that is in use is an error that names it", async () => {
    const { port } = new URL((await startTestServer()).url);
    expect(await startOn("127.0.0.1", Number(port))).toEqual({
      ok: false,
      error: expect.stringMatching(`^can't listen on 127.0.0.1:${port}: .*EADDRINUSE.*free address`),
    });
  });

  test("that is in use changes no metric, because another server may be running", async () => {
    const { port } = new URL((await startTestServer()).url);
    const changed: string[] = [];
    const change = (name: string) => void changed.push(name);
    await startOn("127.0.0.1", Number(port), { set: change, inc: change });
    expect(changed).toEqual([]);
  });

  test("that this host does not have is an error that names it", async () => {
    expect(await startOn("192.0.2.1", 9713)).toEqual({
      ok: false,
      error: expect.stringMatching(
        "^can't listen on 192.0.2.1:9713: .*EADDRNOTAVAIL.*; choose a free address of this host$",
      ),
    });
  });

  test("with a port that the process may not use is an error that says which ports it may use", () => {
    const denied = Object.assign(new Error("listen EACCES: permission denied 0.0.0.0:443"), { code: "EACCES" });
    expect(listenProblem("0.0.0.0", 443, denied, "choose a free address of this host")).toBe(
      "can't listen on 0.0.0.0:443: the process may not use this port (EACCES): give it CAP_NET_BIND_SERVICE, use a port above 1023, or choose a free address of this host",
    );
  });

  test("that is a name is only the first address of that name, on which all checks are made", async () => {
    const web = orThrow(await startOn("localhost", 0));
    onTestFinished(() => web.close(SHUTDOWN_BUDGET.webMs));
    const { port } = new URL(web.url);
    const answered = await Promise.all(
      ["127.0.0.1", "[::1]"].map((host) =>
        fetch(`http://${host}:${port}/-/healthy`).then(
          ({ status }) => status,
          () => "refused",
        ),
      ),
    );
    expect(answered.toSorted()).toEqual([200, "refused"]);
  });

  test("that is a wildcard is shown as a URL that can be opened", async () => {
    const web = orThrow(await startOn("0.0.0.0", 0));
    expect(web.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    await web.close(SHUTDOWN_BUDGET.webMs);
  });
});
