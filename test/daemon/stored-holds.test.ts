import { expect, test } from "vitest";
import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { ok } from "../../src/base/result.ts";
import { openOnlyTerm } from "../../src/daemon/leadership-term.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import { silentLog } from "../../src/platform/log.ts";
import type { CallOutcome } from "../../src/rate-limit/permits.ts";
import { HOLDS_FACT } from "../../src/rate-limit/stored-holds.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { startDaemonGroup } from "../harness/daemon/daemon-group.ts";
import { listsOnlySettings } from "../harness/daemon/quiet-network.ts";
import { businessLimits, START_MS } from "../harness/daemon/virtual-daemon.ts";

/** A daemon's rate limiter, which is opened again on the same state by each restart. */
function createRestarts() {
  const clock = createVirtualClock(START_MS);
  const store = createMemoryStateStore();
  const runtime = { clock, log: silentLog, random: () => 0.5, eventLog: { record() {} }, metrics: { inc() {} } };
  async function open(plan = "business", baseUrl = "https://proxy.example.net") {
    const service = { base_url: baseUrl };
    const limits = { ...businessLimits.categories, plan, reserve: 0.2, month: { starts_on: 1, used: 0 } };
    const term = await openOnlyTerm(runtime as never, { service, limits } as never, ok(store));
    const { rateLimiter, remediationState } = term;
    return {
      rateLimiter,
      remediationState,
      /** Makes one call of the node list that ends with `outcome`, and stops the process. */
      async callAndStop(outcome: CallOutcome): Promise<void> {
        const permit = rateLimiter.acquire("node_management", "walk", new AbortController().signal);
        await clock.advance(10 * SECOND_MS);
        rateLimiter.release((await permit)!, outcome);
        await remediationState.flush();
      },
      heldForMs: (): DurationMs => Math.round(rateLimiter.heldForMs("node_management", "walk")),
    };
  }
  return { clock, store, open };
}

const tooManyRequests = (retryAfterMs: DurationMs): CallOutcome => ({
  kind: "rate_limited",
  reading: { limit: 100, remaining: 0, resetAt: null },
  retryAfterMs,
});

const answered: CallOutcome = { kind: "answered", reading: { limit: 100, remaining: 90, resetAt: null } };

test("a restarted daemon waits for the rest of a Retry-After", async () => {
  const { clock, open } = createRestarts();
  await (await open()).callAndStop(tooManyRequests(10 * MINUTE_MS));
  await clock.advance(4 * MINUTE_MS);
  const { rateLimiter, heldForMs } = await open();
  expect(heldForMs()).toBe(6 * MINUTE_MS + SECOND_MS);
  let isPermitted = false;
  void rateLimiter.acquire("node_management", "walk", new AbortController().signal).then(() => {
    isPermitted = true;
  });
  await clock.advance(6 * MINUTE_MS);
  expect(isPermitted).toBe(false);
  await clock.advance(10 * SECOND_MS);
  expect(isPermitted).toBe(true);
});

test("a restarted daemon waits for the Retry-After of an overloaded service", async () => {
  const { open } = createRestarts();
  await (await open()).callAndStop({ kind: "answered", reading: null, retryAfterMs: 5 * MINUTE_MS });
  expect((await open()).heldForMs()).toBe(5 * MINUTE_MS + SECOND_MS);
});

test("a 429 that concerns one category does not hold another one after a restart", async () => {
  const { open } = createRestarts();
  await (await open()).callAndStop(tooManyRequests(10 * MINUTE_MS));
  expect((await open()).rateLimiter.heldForMs("session_monitoring", "walk")).toBe(0);
});

test("a wall clock that was set back by a year while the daemon was down makes a hold no longer than it was", async () => {
  const { clock, open } = createRestarts();
  await (await open()).callAndStop(tooManyRequests(6 * HOUR_MS));
  clock.stepWallClock(-365 * DAY_MS);
  expect((await open()).heldForMs()).toBe(6 * HOUR_MS);
  await clock.advance(5 * HOUR_MS);
  expect((await open()).heldForMs()).toBe(HOUR_MS);
});

test("a hold that is over does not return, even if the wall clock was set back to before it", async () => {
  const { clock, open } = createRestarts();
  await (await open()).callAndStop(tooManyRequests(MINUTE_MS));
  await clock.advance(2 * MINUTE_MS);
  await (await open()).callAndStop(answered);
  clock.stepWallClock(-HOUR_MS);
  expect((await open()).heldForMs()).toBe(0);
});

test("a restart with other limits ends a long hold within a minute, as a reload does", async () => {
  const { open } = createRestarts();
  await (await open("starter")).callAndStop(tooManyRequests(6 * HOUR_MS));
  expect((await open("business")).heldForMs()).toBeLessThanOrEqual(MINUTE_MS);
});

test("a hold that a reload has shortened is not longer after a restart", async () => {
  const { open } = createRestarts();
  const daemon = await open();
  await daemon.callAndStop(tooManyRequests(6 * HOUR_MS));
  // As after a change of the API key.
  daemon.rateLimiter.setLimits(daemon.rateLimiter.ledger.limits, 1);
  await daemon.remediationState.flush();
  expect((await open()).heldForMs()).toBe(MINUTE_MS);
});

test("a restart with another service ends its holds", async () => {
  const { open } = createRestarts();
  const daemon = await open();
  daemon.remediationState.facts.write("remediation.service", "https://proxy.example.net");
  await daemon.callAndStop(tooManyRequests(6 * HOUR_MS));
  expect((await open("business", "https://other.example.net")).heldForMs()).toBe(0);
});

test.each(["soon", "5", "[]", "{}", '{"leftMs":null}', '{"at":"noon","leftMs":{"node_management":{"walk":60000}}}'])(
  "holds that can't be read, such as %s, hold nothing, and do not damage the journal",
  async (value) => {
    const { store, open } = createRestarts();
    await store.journal.commit([{ kind: "fact", key: HOLDS_FACT, value }]);
    const { heldForMs, remediationState } = await open();
    expect([heldForMs(), remediationState.journalProblem()]).toEqual([0, null]);
  },
);

test("a standby that takes over waits for the rest of the Retry-After that the leader got", async () => {
  const group = await startDaemonGroup({ settings: listsOnlySettings });
  await group.advance(5 * MINUTE_MS);
  const [leader] = group.leaders();
  const fault = { kind: "status", status: 429, retryAfter: "1800" } as const;
  group.service.setFaults([{ afterMs: group.clock.monotonic(), forMs: HOUR_MS, fault }]);
  await group.advanceUntil(() => group.rejectedCalls() > 0);
  await group.daemons.find(({ name }) => name === leader)!.stop();
  await group.advance(10 * MINUTE_MS);
  expect(group.leaders()).not.toContain(leader);
  expect(group.leaders()).toHaveLength(1);
  expect(group.rejectedCalls()).toBe(1);
});
