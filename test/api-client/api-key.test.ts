import { describe, expect, test } from "vitest";
import { listNodesCall, readStatsCall } from "../../src/api-client/endpoints.ts";
import type { Secret } from "../../src/model/ports.ts";
import { SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { fixedKey } from "../harness/daemon/virtual-daemon.ts";
import { createClientSetup, SESSIONS_KEY } from "./client-fixture.ts";

/** Creates a key that is valid, and whose file holds a valid one again once it has expired. */
function renewableKey() {
  let key = SIMULATION_KEY;
  const secret: Secret = {
    value: () => key,
    refresh() {
      key = SIMULATION_KEY;
      return { ok: true, value: true };
    },
  };
  const expire = () => {
    key = "old-key";
  };
  return { secret, expire };
}

describe("the API key", () => {
  test("a 403 is reported with the missing scope", async () => {
    const { get, calls } = createClientSetup({ secret: fixedKey(SESSIONS_KEY) });
    const answer = await get(listNodesCall({ page: 1, limit: 10 }));
    expect(answer.ok ? "" : answer.error.kind).toBe("forbidden");
    expect(answer.ok ? "" : answer.error.message).toContain("lack the scope nodes:read");
    expect(calls).toEqual(["nodes_list 403"]);
  });

  test("the rate limit headers of a 401 are ignored", async () => {
    const { get, calls, rateLimiter } = createClientSetup({ secret: fixedKey("no-key") });
    await get();
    expect(calls).toEqual(["stats 401"]);
    expect(rateLimiter.ledger.categories.session_monitoring.stated.lastStatement).toBeNull();
  });

  test("after a 401 the key file is read again, and a renewed key is used immediately", async () => {
    const { secret, expire } = renewableKey();
    expire();
    const { get, calls } = createClientSetup({ secret });
    expect((await get()).ok).toBe(true);
    expect(calls).toEqual(["stats 401", "stats 200"]);
  });

  test("a renewed key is also used immediately if calls of the endpoint are not retried because they failed", async () => {
    const { secret, expire } = renewableKey();
    const { get, calls, service } = createClientSetup({ fault: { kind: "status", status: 503 }, secret });
    expect((await get()).ok).toBe(false);
    service.setFaults([]);
    expire();
    expect((await get()).ok).toBe(true);
    expect(calls.slice(-2)).toEqual(["stats 401", "stats 200"]);
  });
});

test("calls in flight while the key is renewed are retried with the new one", async () => {
  let key = "old-key";
  const { client, clock, calls } = createClientSetup({
    secret: { value: () => key, refresh: () => ({ ok: true, value: false }) },
  });
  const answers = [1, 2, 3].map(() => client.get(readStatsCall, "walk", new AbortController().signal));
  await clock.advance(200);
  key = SIMULATION_KEY;
  await clock.advance(60_000);
  expect((await Promise.all(answers)).every((answer) => answer.ok)).toBe(true);
  expect(calls).toContain("stats 401");
});

test("a key file that can't be read is reported with the 401", async () => {
  const secret: Secret = { value: () => "old-key", refresh: () => ({ ok: false, error: "key.txt is empty" }) };
  const answer = await createClientSetup({ secret }).get();
  expect(answer.ok ? "" : answer.error.message).toMatch(/the API key is not accepted; key.txt is empty$/);
});
