import { describe, expect, test } from "vitest";
import { ok } from "../../../src/base/result.ts";
import type { WebDeps } from "../../../src/web/http/route.ts";
import {
  defaultDeps,
  fetchFrom,
  loggedFields,
  loggedMessages,
  metricsBody,
  startTestServer,
} from "../http/test-server.ts";

describe("/metrics", () => {
  test("sends the exposition with its content type, and releases it once", async () => {
    const asked: unknown[] = [];
    let done = 0;
    const web = await startTestServer({
      scrape: (request) => {
        asked.push(request);
        return Promise.resolve({
          contentType: "application/openmetrics-text; version=1.0.0; charset=utf-8",
          contentLength: metricsBody.length,
          chunks: [metricsBody.subarray(0, 5), metricsBody.subarray(5)],
          revoked: new AbortController().signal,
          release: () => void done++,
        });
      },
    });
    const response = await fetchFrom(web, "/metrics", {
      headers: { accept: "application/openmetrics-text", "accept-encoding": "identity" },
    });
    expect(response.status).toBe(200);
    expect(response.text).toBe(metricsBody.toString());
    expect(response.headers.get("content-type")).toContain("application/openmetrics-text");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(asked).toMatchObject([{ accept: "application/openmetrics-text", "accept-encoding": "identity" }]);
    expect(done).toBe(1);
  });

  test("answers HEAD without a body", async () => {
    const response = await fetchFrom(await startTestServer(), "/metrics", { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-length")).toBe(String(metricsBody.length));
    expect(response.text).toBe("");
  });

  test("does not wait for a reload", async () => {
    const reload = Promise.withResolvers<Awaited<ReturnType<WebDeps["reload"]>>>();
    const web = await startTestServer({ reload: () => reload.promise });
    const waiting = fetchFrom(web, "/-/reload", { method: "POST" });
    expect((await fetchFrom(web, "/metrics")).status).toBe(200);
    expect((await fetchFrom(web, "/api/v1/nodes?page=x")).status).toBe(400);
    expect((await fetchFrom(web, "/metrics")).status).toBe(200);
    reload.resolve(ok(undefined));
    expect((await waiting).status).toBe(200);
  });

  test("disconnects the client if a chunk can't be rendered, and logs the error", async () => {
    function* chunks() {
      yield metricsBody;
      throw new Error("inner detail");
    }
    const scrape = { ...(await defaultDeps.scrape({})), contentLength: null, chunks: chunks() };
    const web = await startTestServer({ scrape: () => Promise.resolve(scrape) });
    await expect(fetchFrom(web, "/metrics")).rejects.toThrow();
    expect(loggedMessages).toEqual(["web request failed"]);
    expect(loggedFields).toMatchObject([{ path: "/metrics", err: new Error("inner detail") }]);
  });

  test("answers 500 without details if it fails, and logs the error", async () => {
    const web = await startTestServer({ scrape: () => Promise.reject(new Error("inner detail")) });
    const response = await fetchFrom(web, "/metrics");
    expect(response).toMatchObject({ status: 500, text: "internal error; see the daemon's log\n" });
    expect(loggedMessages).toEqual(["web request failed"]);
    expect(loggedFields).toMatchObject([{ err: new Error("inner detail") }]);
  });
});
