import type { FastifyReply, FastifyRequest } from "fastify";
import { describe, expect, test } from "vitest";
import { fail, ok } from "../../../src/base/result.ts";
import type { WebDeps } from "../../../src/web/http/route.ts";
import { pageRoutes } from "../../../src/web/ui/page-routes.ts";
import { buildFleet } from "../fleet-fixture.ts";
import { openConnection } from "../http/connections.ts";
import { fetchFrom, loggedFields, loggedMessages, startTestServer } from "../http/test-server.ts";
import { idleRemediation, idleStatus } from "./remediation-view-fixture.ts";

test.each(["decisions", "actions", "orders", "nodes/node_1"])(
  "/api/v1/%s answers 503 with the reason while the journal can't be read",
  async (path) => {
    const unreadable = () => Promise.reject(new Error("the database can't be reached"));
    const queries = { decisions: unreadable, actions: unreadable, operatorCommands: unreadable, historyOf: unreadable };
    const web = await startTestServer({ remediation: () => ({ ...idleRemediation, ...queries }) });
    const message = "the journal can't be read: the database can't be reached";
    const response = await fetchFrom(web, `/api/v1/${path}`);
    expect({ status: response.status, body: JSON.parse(response.text) }).toEqual({
      status: 503,
      body: { error: "unavailable", message },
    });
    expect(loggedMessages).toEqual(["web requests can't read the journal", "web request failed"]);
    expect(loggedFields).toMatchObject([{ path: expect.stringContaining("/api/v1/") }, { problem: message }]);
  },
);

test("that the journal can't be read is logged once for each list unless the daemon reports it, and again after it could be read", async () => {
  const error = new Error("permission denied");
  let isDenied = true;
  let journal: string | null = null;
  const rows = () => (isDenied ? Promise.reject(error) : Promise.resolve([]));
  const status = () => ({ ...idleStatus, journal });
  const web = await startTestServer({
    remediation: () => ({ ...idleRemediation, decisions: rows, actions: rows, status }),
  });
  const read = async (...paths: readonly string[]) => {
    loggedMessages.length = 0;
    for (const path of paths) await fetchFrom(web, `/api/v1/${path}`);
    return loggedMessages.filter((message) => message !== "web request failed");
  };
  expect(await read("decisions", "orders", "decisions", "decisions")).toEqual(["web requests can't read the journal"]);
  expect(loggedFields[0]).toEqual({ path: "/api/v1/decisions", err: error });
  // Actions that wait for approval are in memory.
  const actions = ["actions", "actions?state=awaiting", "actions"];
  expect(await read(...actions)).toEqual(["web requests can't read the journal"]);
  isDenied = false;
  expect(await read("decisions", "decisions")).toEqual(["web requests can read the journal again"]);
  isDenied = true;
  journal = "the journal can't be written: the database can't be reached";
  expect(await read("decisions")).toEqual([]);
  journal = null;
  expect(await read("decisions")).toEqual(["web requests can't read the journal"]);
});

test("/api/v1/decisions answers 500 without details if a defect is the cause, and logs the error", async () => {
  const error = new TypeError("inner detail");
  const web = await startTestServer({
    remediation: () => ({ ...idleRemediation, decisions: () => Promise.reject(error) }),
  });
  const response = await fetchFrom(web, "/api/v1/decisions");
  expect({ status: response.status, body: JSON.parse(response.text) }).toEqual({
    status: 500,
    body: { error: "internal", message: "internal error; see the daemon's log" },
  });
  expect(loggedFields).toMatchObject([{ path: "/api/v1/decisions", err: error }]);
});

test("/-/ready answers 503 while the journal can't be written, with the reason, and /-/healthy 200", async () => {
  let journal: string | null = "the journal can't be written: database or disk is full";
  const web = await startTestServer({
    remediation: () => ({ ...idleRemediation, status: () => ({ ...idleStatus, journal }) }),
  });
  expect(await fetchFrom(web, "/-/ready")).toMatchObject({
    status: 503,
    text: "not ready\nthe journal can't be written: database or disk is full\n",
  });
  for (const method of ["GET", "HEAD"]) {
    expect((await fetchFrom(web, "/-/ready", { method })).status).toBe(503);
    expect((await fetchFrom(web, "/-/healthy", { method })).status).toBe(200);
  }
  journal = null;
  expect(await fetchFrom(web, "/-/ready")).toMatchObject({ status: 200, text: "ready\n" });
});

describe("/-/reload", () => {
  test("answers 200 regardless of the body", async () => {
    const web = await startTestServer();
    for (const body of [undefined, "", "a=b", "{broken"]) {
      const init = body === undefined ? {} : { body, headers: { "content-type": "application/json" } };
      expect(await fetchFrom(web, "/-/reload", { method: "POST", ...init })).toMatchObject({
        status: 200,
        text: "reloaded\n",
      });
    }
  });

  test("answers 400 with an error on each line", async () => {
    const errors = ["a.yaml:3:5: unknown key", "a.yaml:9:1: no duration"];
    const response = await fetchFrom(
      await startTestServer({ reload: () => Promise.resolve(fail(errors)) }),
      "/-/reload",
      {
        method: "POST",
      },
    );
    expect(response).toMatchObject({ status: 400, text: `${errors.join("\n")}\n` });
  });

  test("runs again after one that failed", async () => {
    let runs = 0;
    const web = await startTestServer({
      reload: () => (++runs === 1 ? Promise.reject(new Error("bug")) : Promise.resolve(ok(undefined))),
    });
    expect((await fetchFrom(web, "/-/reload", { method: "POST" })).status).toBe(500);
    expect((await fetchFrom(web, "/-/reload", { method: "POST" })).status).toBe(200);
  });

  test("answers GET with 405", async () => {
    expect((await fetchFrom(await startTestServer(), "/-/reload")).status).toBe(405);
  });
});

describe("the API", () => {
  test.each([
    ["/api/v1/status", expect.objectContaining({ version: "0.1.0" })],
    ["/api/v1/budget", { month: 1 }],
    ["/api/v1/nodes/node_1", expect.objectContaining({ id: "node_1", policies: [], decisions: [] })],
    ["/api/v1/decisions", { data: [] }],
    ["/api/v1/actions", { data: [] }],
    ["/api/v1/policies", { data: [] }],
  ])("returns %s as JSON that is not cached", async (path, answer) => {
    const response = await fetchFrom(await startTestServer(), path);
    expect(response.status).toBe(200);
    expect(JSON.parse(response.text)).toEqual(answer);
    expect(response.headers.get("content-type")).toContain("application/json");
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("decodes the query", async () => {
    const nodes: WebDeps["nodes"] = (query) => ({ next: () => ({ done: true, value: { query } }) });
    const web = await startTestServer({ nodes });
    const query = async (search: string) => JSON.parse((await fetchFrom(web, `/api/v1/nodes${search}`)).text).query;
    expect(await query("")).toEqual({});
    expect(await query("?page=3&limit=1000&status=offline&country=DE&region=eu-west&q=we%22ird")).toEqual({
      page: "3",
      limit: "1000",
      status: "offline",
      country: "DE",
      region: "eu-west",
      q: 'we"ird',
    });
  });

  test.each([
    ["page=0", 'parameter "page": must be a whole number from 1 to 1000000'],
    ["page=1e3", 'parameter "page": must be a whole number from 1 to 1000000'],
    ["limit=1001", 'parameter "limit": must be a whole number from 1 to 1000'],
    ["limit=-1", 'parameter "limit": must be a whole number from 1 to 1000'],
    [
      "status=broken",
      'parameter "status": must be one of online, offline, quarantined, rebooting, maintenance, unknown',
    ],
    ["country=", 'parameter "country": must be 1 to 256 characters'],
    [`q=${"x".repeat(257)}`, 'parameter "q": must be 1 to 256 characters'],
    ["page=1&page=2", 'parameter "page": must be given only once'],
    ["pages=1", 'parameter "pages": unknown; must be one of page, limit, node, status, country, region, q'],
    ["__proto__=1", 'parameter "__proto__": unknown; must be one of page, limit, node, status, country, region, q'],
  ])("refuses ?%s, naming the parameter", async (search, message) => {
    const response = await fetchFrom(await startTestServer(), `/api/v1/nodes?${search}`);
    expect(response.status).toBe(400);
    expect(JSON.parse(response.text)).toEqual({ error: "bad_request", message });
  });

  test.each(["status", "budget", "fleet", "history"])("refuses any parameter of %s", async (route) => {
    const response = await fetchFrom(await startTestServer(), `/api/v1/${route}?region=eu-west`);
    expect(response.status).toBe(400);
    expect(JSON.parse(response.text).message).toBe('parameter "region": unknown; this route has no query parameters');
  });

  test("answers 404 in JSON for an unknown node or route", async () => {
    const web = await startTestServer({ fleet: () => buildFleet([{ id: "node_1" }]) });
    const node = await fetchFrom(web, "/api/v1/nodes/node_2");
    expect(node.status).toBe(404);
    expect(JSON.parse(node.text)).toEqual({ error: "not_found", message: 'no node with the id "node_2" in the fleet' });
    // A standby, or a leader before its first walk.
    const { text } = await fetchFrom(await startTestServer({ fleet: () => null }), "/api/v1/nodes/node_2");
    expect(JSON.parse(text).message).toBe(
      'the journal has no rows about the node "node_2", and this daemon has not read the whole node list',
    );
    const route = await fetchFrom(web, "/api/v1/none");
    expect(route.status).toBe(404);
    expect(JSON.parse(route.text)).toEqual({
      error: "not_found",
      message: "there is no such route; docs/http.md lists all routes",
    });
  });

  test("answers errors in JSON also if the request states the whole URL", async () => {
    const web = await startTestServer();
    for (const path of ["/api/v1/nodes?page=0", "/api/v1/none"]) {
      const head = `GET ${web.url}${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
      expect(await openConnection(web.url, head).received).toMatch(
        /^HTTP\/1\.1 40[04] .*content-type: application\/json/is,
      );
    }
  });

  test("accepts any character in a node id", async () => {
    const web = await startTestServer({ node: (id) => ({ id }) });
    const id = 'we"ird\na/ü';
    expect(JSON.parse((await fetchFrom(web, `/api/v1/nodes/${encodeURIComponent(id)}`)).text)).toMatchObject({ id });
  });
});

describe("the status page", () => {
  test("serves each of its files with an ETag, compressed", async () => {
    const web = await startTestServer();
    const page = await fetchFrom(web, "/");
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.text).not.toMatch(/https?:|style="|onclick=|<style|<script>/);
    const paths = [...page.text.matchAll(/(?:href|src)="((?!#)[^"]*)"/g)].map(([, path]) => `/${path!}`);
    expect(paths.filter((path) => path.startsWith("/page/")).sort()).toEqual([
      "/page/icon.svg",
      "/page/icon.svg",
      "/page/main.js",
      "/page/styles.css",
    ]);
    for (const path of paths.filter((route) => !route.endsWith("/events"))) {
      const file = await fetchFrom(web, path, { headers: { "accept-encoding": "identity" } });
      expect([path, file.status]).toEqual([path, 200]);
      if (!path.startsWith("/page/")) continue;
      const tag = file.headers.get("etag")!;
      expect(file.headers.get("cache-control")).toBe("no-cache");
      expect((await fetchFrom(web, path, { headers: { "if-none-match": tag } })).status).toBe(304);
      const packed = await fetchFrom(web, path, { headers: { "accept-encoding": "gzip" } });
      expect([packed.headers.get("content-encoding"), packed.text === file.text]).toEqual(["gzip", true]);
    }
    expect((await fetchFrom(web, "/page/server.js")).status).toBe(404);
    expect((await fetchFrom(web, "/page/..%2froutes.ts")).status).toBe(404);
  });

  test("has only its own scripts and styles, each in one file", async () => {
    const web = await startTestServer();
    const { headers } = await fetchFrom(web, "/");
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const [script, styles] = await Promise.all(
      ["main.js", "styles.css"].map((name) => fetchFrom(web, `/page/${name}`)),
    );
    expect(script!.text).not.toMatch(/^\s*(?:import|export)\b/m);
    expect(styles!.text).not.toContain("@import");
    // The charts are drawn with a library that the page loads once it has shown the fleet.
    expect((await fetchFrom(web, "/page/uPlot.js")).status).toBe(200);
    expect((await fetchFrom(web, "/page/fleet/grid.js")).status).toBe(404);
  });

  test("is read again after its files could not be read", async () => {
    let reads = 0;
    const [route] = pageRoutes(() =>
      ++reads === 1 ? Promise.reject(new Error("no such file")) : Promise.resolve(new Map()),
    );
    const request = { url: "/" } as FastifyRequest;
    const codes: number[] = [];
    const reply = { code: (code: number) => codes.push(code) && reply, type: () => reply, send: () => reply };
    await expect(route!.handle(request, reply as unknown as FastifyReply)).rejects.toThrow("no such file");
    await route!.handle(request, reply as unknown as FastifyReply);
    expect([reads, codes]).toEqual([2, [404]]);
  });
});

test("a path parameter that is too long gets 414, without being repeated", async () => {
  const response = await fetchFrom(await startTestServer(), `/api/v1/nodes/${"a".repeat(257)}`);
  expect([response.status, JSON.parse(response.text)]).toEqual([
    414,
    { error: "path_too_long", message: "a part of the path has more than 256 characters" },
  ]);
});
