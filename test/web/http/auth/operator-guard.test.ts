import { describe, expect, test } from "vitest";
import { ok } from "../../../../src/base/result.ts";
import { inlineSecret } from "../../../../src/platform/secret-file.ts";
import { createTrustedProxyCheck } from "../../../../src/web/http/client-address.ts";
import { recordingCommands } from "../../api/remediation-view-fixture.ts";
import { sendHttpRequest, startServerWithFiles } from "../secured-server.ts";
import { adminOperators } from "../test-server.ts";

const TOKEN = "correct-horse";
const PLAIN = { "web.yml": "http_server_config: { http2: false }" };
const RELOAD = "/-/reload";
const PAUSE = "/api/v1/pause";

/** Starts a server with or without a token, and records reloads and commands. */
async function serverWithOptionalToken({
  token = TOKEN,
  proxies = [],
}: {
  token?: string | null;
  proxies?: readonly string[];
} = {}) {
  const done: string[][] = [];
  const { web, metrics } = await startServerWithFiles(PLAIN, {
    deps: {
      operators: () => adminOperators(token === null ? null : inlineSecret(token)),
      execute: recordingCommands(done),
      reload: () => Promise.resolve(ok(void done.push(["reload"]))),
      isTrustedProxy: createTrustedProxyCheck(proxies),
    },
  });
  const post = async (path: string, headers: Record<string, string> = {}) =>
    (await sendHttpRequest(web, path, { method: "POST", headers })).status;
  return { web, done, post, metrics, bearer: { authorization: `Bearer ${TOKEN}` } };
}

describe("a reload", () => {
  test("needs the token if one is configured", async () => {
    const { done, post, bearer } = await serverWithOptionalToken();
    for (const path of [RELOAD, PAUSE]) {
      expect(await post(path)).toBe(401);
      expect(await post(path, { authorization: "Bearer guess" })).toBe(401);
    }
    expect(done).toEqual([]);
    expect([await post(RELOAD, bearer), await post(PAUSE, bearer)]).toEqual([200, 200]);
    expect(done.map(([name]) => name)).toEqual(["reload", "pause"]);
  });

  test("needs no token if none is configured, but then no web page may send it", async () => {
    const { web, done, post, metrics } = await serverWithOptionalToken({ token: null });
    const { host } = new URL(web.url);
    const pages: Record<string, string>[] = [
      { origin: "http://evil.test" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      // DNS rebinding: to the browser, the page is from this server.
      { origin: "http://evil.test:9713", host: "evil.test:9713" },
      { origin: `http://${host}`, "sec-fetch-site": "same-origin" },
    ];
    for (const headers of pages) expect([headers, await post(RELOAD, headers)]).toEqual([headers, 403]);
    expect(done).toEqual([]);
    expect(metrics["proxywarden_web_refusals_total origin"]).toBe(pages.length);
    expect(await post(RELOAD)).toBe(200);
    expect(await post(RELOAD, { host: "proxywarden.monitoring.svc:9713" })).toBe(200);
  });
});

describe("with a token", () => {
  test.each([
    ["http://proxy.test", "proxy.test", 200],
    ["https://proxy.test", "proxy.test:443", 200],
    ["http://PROXY.test:9713", "proxy.test:9713", 200],
    ["http://[::1]:9713", "[::1]:9713", 200],
    ["http://evil.test", "proxy.test", 403],
    ["http://proxy.test:8080", "proxy.test", 403],
    ["null", "proxy.test", 403],
    ["http://proxy.test", "", 403],
  ])("a request by a page of %s to the host %s is answered %i", async (origin, host, status) => {
    const { post, bearer } = await serverWithOptionalToken();
    for (const path of [RELOAD, PAUSE]) expect(await post(path, { ...bearer, origin, host })).toBe(status);
  });

  test("a page of another site is refused even without its origin", async () => {
    const { post, bearer } = await serverWithOptionalToken();
    expect(await post(PAUSE, { ...bearer, "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await post(PAUSE, { ...bearer, "sec-fetch-site": "same-origin" })).toBe(200);
  });

  test("a proxy that changes Host must be trusted and send X-Forwarded-Host", async () => {
    const page = { origin: "https://proxy.test", host: "127.0.0.1:9713", "x-forwarded-host": "proxy.test" };
    const trusting = await serverWithOptionalToken({ proxies: ["127.0.0.1"] });
    expect(await trusting.post(PAUSE, { ...trusting.bearer, ...page })).toBe(200);
    const other = await serverWithOptionalToken();
    expect(await other.post(PAUSE, { ...other.bearer, ...page })).toBe(403);
  });
});
