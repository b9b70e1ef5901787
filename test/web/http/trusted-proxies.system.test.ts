import { Agent } from "node:http";
import { hashSync } from "bcryptjs";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTrustedProxyCheck } from "../../../src/web/http/client-address.ts";
import { configErrors, withService } from "../../config/config-fixtures.ts";
import { basic, sendHttpRequest, startServerWithFiles } from "./secured-server.ts";
import { loggedFields } from "./test-server.ts";

const PLAIN = { "web.yml": "http_server_config: { http2: false }" };
const behind = (...networks: readonly string[]) => ({ deps: { isTrustedProxy: createTrustedProxyCheck(networks) } });
const forwarded = (list: string) => ({ headers: { "x-forwarded-for": list } });

describe("behind a trusted proxy", () => {
  test("each client that X-Forwarded-For names has limits of its own", async () => {
    const { web, clock } = await startServerWithFiles(PLAIN, behind("127.0.0.0/8"));
    const statuses = async (list: string, times: number) => {
      const seen = new Set<number>();
      for (let time = 0; time < times; time++) seen.add((await sendHttpRequest(web, "/none", forwarded(list))).status);
      return [...seen];
    };
    expect(await statuses("203.0.113.7", 1_000)).toEqual([404]);
    expect(await statuses("203.0.113.7", 1)).toEqual([429]);
    // Entries that the client itself sent are ignored, and so are those of other trusted proxies.
    expect(await statuses("198.51.100.1, 203.0.113.7", 1)).toEqual([429]);
    expect(await statuses("203.0.113.7, 127.0.0.9", 1)).toEqual([429]);
    expect(await statuses("203.0.113.8", 1)).toEqual([404]);
    clock.nowMs += 10;
    expect(await statuses("203.0.113.7:4711", 2)).toEqual([404, 429]);
  });

  test("wrong passwords count against the client, and the log names it", async () => {
    const users = { "web.yml": `basic_auth_users: { ann: ${hashSync("right", 4)} }` };
    const { web } = await startServerWithFiles(users, behind("127.0.0.1"));
    const status = async (client: string) => {
      const headers = { ...basic("ann", "wrong"), ...forwarded(client).headers };
      return (await sendHttpRequest(web, "/metrics", { headers })).status;
    };
    for (let time = 0; time < 10; time++) expect(await status("203.0.113.7")).toBe(401);
    expect([await status("203.0.113.7"), await status("203.0.113.8")]).toEqual([429, 401]);
    expect(loggedFields.at(-1)).toMatchObject({ from: "203.0.113.8" });
  });

  test("its connections have only the limit on all connections", async () => {
    const { web } = await startServerWithFiles(PLAIN, behind("127.0.0.1"));
    const statuses = new Set<number>();
    for (let time = 0; time < 501; time++) statuses.add((await sendHttpRequest(web, "/-/healthy")).status);
    expect([...statuses]).toEqual([200]);
  });
});

test("ignores X-Forwarded-For of other clients", async () => {
  const { web } = await startServerWithFiles(PLAIN, behind("10.0.0.0/8"));
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  onTestFinished(() => agent.destroy());
  const clients = Array.from({ length: 1_001 }, (_, index) => `203.0.${index >> 8}.${index & 255}`);
  const answers = await Promise.all(
    clients.map((client) => sendHttpRequest(web, "/none", { agent, ...forwarded(client) })),
  );
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(1);
});

describe("a list of trusted proxies", () => {
  test.each([
    ["10.0.0.7", "10.0.0.7", true],
    ["10.0.0.7", "10.0.0.8", false],
    ["10.0.0.0/8", "::ffff:10.1.2.3", true],
    ["2001:db8::/32", "2001:db8:1::9", true],
    ["2001:db8::/32", "2001:db9::9", false],
    ["::1", "::1", true],
    ["0.0.0.0/0", "nonsense", false],
    ["0.0.0.0/0", undefined, false],
  ])("of %s has %s: %s", (network, address, isIn) => {
    expect(createTrustedProxyCheck([network])(address)).toBe(isIn);
  });

  test("is checked when it is read", () => {
    expect(configErrors(withService("web: { trusted_proxies: [10.0.0.1, 10.0.0.0/8, '::1', 'fd00::/8'] }"))).toEqual(
      [],
    );
    for (const wrong of ["10.0.0.0/33", "localhost", "10.0.0", "*", "10.0.0.1:80"]) {
      expect(configErrors(withService(`web: { trusted_proxies: ['${wrong}'] }`))).toEqual([
        `2:26: web.trusted_proxies[0]: found "${wrong}"; must be an IP address or a network such as 10.0.0.7, 10.0.0.0/8 or 2001:db8::/32`,
      ]);
    }
  });
});
