import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../../src/base/duration.ts";
import { ok } from "../../src/base/result.ts";
import { openOnlyTerm } from "../../src/daemon/leadership-term.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import { silentLog } from "../../src/platform/log.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { businessLimits, START_MS } from "../harness/daemon/virtual-daemon.ts";

const service = { base_url: "https://proxy.example.net" };

test("limits.month.used applies to the service's month if the wall clock was behind when the state was created", async () => {
  const clock = createVirtualClock(START_MS);
  clock.stepWallClock(-31 * DAY_MS);
  const limits = { ...businessLimits.categories, plan: "business", reserve: 0.2, month: { starts_on: 1, used: 1_000 } };
  const runtime = { clock, log: silentLog, random: () => 0.5, eventLog: { record() {} } } as never;
  const { rateLimiter } = await openOnlyTerm(runtime, { service, limits } as never, ok(createMemoryStateStore()));
  expect(rateLimiter.monthUsed()).toBe(1_000);
  await clock.advance(SECOND_MS);
  const startedAt = clock.monotonic();
  rateLimiter.followServiceClock({
    agreedAt: () => clock.monotonic(),
    timeAt: (at) => START_MS + (at - startedAt),
  });
  expect(rateLimiter.monthUsed()).toBe(1_000);
  await clock.advance(31 * DAY_MS + HOUR_MS);
  expect(rateLimiter.monthUsed()).toBe(0);
});
