import { describe, expect, test } from "vitest";
import { clientKey, createPerClient } from "../../../src/web/http/client-address.ts";
import { createTokenBucket } from "../../../src/web/http/request-rates.ts";

describe("clients", () => {
  test.each([
    ["10.0.0.1", "10.0.0.1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8:1:2::9", "2001:db8:1:2"],
    ["2001:db8::9", "2001:db8:0:0"],
    ["::1", "0:0:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
    ["10.0.0.1:4711", "10.0.0.1"],
    ["[2001:db8:1:2::9]:4711", "2001:db8:1:2"],
    ["_hidden", "unknown"],
    ["", "unknown"],
    [undefined, "unknown"],
  ])("with the address %s are counted as %s", (address, client) => {
    expect(clientKey(address)).toBe(client);
  });

  test("are forgotten, least recently used first, above a bound", () => {
    let created = 0;
    const numberOf = createPerClient(() => created++, 2);
    expect(["a", "b", "a", "c", "a", "b"].map(numberOf)).toEqual([0, 1, 0, 2, 0, 3]);
  });

  test("have a token bucket that refills up to its burst", () => {
    const takeToken = createTokenBucket({ intervalMs: 100, burst: 2 });
    expect([0, 0, 0, 50, 100, 100].map((now) => takeToken(now))).toEqual([0, 0, 100, 50, 0, 100]);
    expect([9_000, 9_000, 9_000].map((now) => takeToken(now))).toEqual([0, 0, 100]);
  });
});
