import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { courses, deeds, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { startWard } from "../../harness/quiet-network.ts";

const byLastSeen = rebootOffline({ when: 'node.status == "offline" && now - node.last_seen > duration("8m")' });

for (const hours of [-30, 5]) {
  test(`our wall clock set by ${hours} h makes no node stale, hurries no timer, and touches nobody`, async () => {
    const policies = [
      byLastSeen,
      rebootOffline({ name: "stale", when: 'now - node.last_seen > duration("4m")', forMs: 0 }),
    ];
    const ward = await startWard({ rules: rulesOf(policies) });
    const [node] = ward.nodes("us-east");
    ward.daemon.clock.step(hours * HOUR_MS);
    ward.people.fallIll(node!, { ailment: "hot", cure: "person" });
    await ward.pass(20 * MINUTE_MS);
    expect(ward.postCount()).toBe(0);
    expect(ward.episodes()).toEqual([]);
    await ward.stop();
  });

  test(`our wall clock set by ${hours} h in mid-episode changes none of its times`, async () => {
    const retry = { episodes: 5, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
    const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.reboot], retry })]) });
    ward.fell(ward.nodes("us-east")[0]!, "person");
    await ward.pass(3 * MINUTE_MS);
    ward.daemon.clock.step(hours * HOUR_MS);
    await ward.pass(MINUTE_MS);
    expect(ward.postCount()).toBe(0);
    await ward.pass(4 * MINUTE_MS);
    expect(ward.postCount()).toBe(1);
    ward.daemon.clock.step(-hours * HOUR_MS);
    await ward.pass(5 * MINUTE_MS);
    expect(deeds(ward)).toEqual(["reboot: null"]);
    await ward.pass(5 * MINUTE_MS);
    expect(deeds(ward)).toEqual(["reboot: ineffective"]);
    // Given up: the next try is an hour from now, whatever a clock on the wall says.
    ward.daemon.clock.step(hours * HOUR_MS);
    await ward.pass(45 * MINUTE_MS);
    expect(ward.postCount()).toBe(1);
    await ward.pass(20 * MINUTE_MS);
    expect(ward.postCount()).toBe(2);
    await ward.stop();
  });
}

test("a wall clock that was set back over a restart makes no cool-down longer than what is left of it, nor shorter", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.reboot] })], { cooldownMs: HOUR_MS }) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(30 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  ward.fell(node!);
  ward.daemon.clock.step(-24 * HOUR_MS);
  await ward.restart();
  await ward.pass(35 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["cooldown"]);
  await ward.pass(35 * MINUTE_MS);
  expect(ward.postCount()).toBe(2);
  await ward.stop();
});

for (const minutes of [-90, 90]) {
  test(`a service whose clock is off by ${minutes} min from one moment to the next touches nobody`, async () => {
    const ward = await startWard({
      rules: rulesOf([{ ...byLastSeen, when: 'now - node.last_seen > duration("3m")', forMs: 0 }]),
    });
    ward.strike({ kind: "clock_skew", skewMs: minutes * MINUTE_MS });
    await ward.pass(HOUR_MS);
    expect(ward.postCount()).toBe(0);
    ward.strike(null);
    await ward.pass(HOUR_MS);
    expect(ward.postCount()).toBe(0);
    await ward.stop();
  });
}

test("a node that is ill while our clock is wrong by days is healed all the same", async () => {
  const ward = await startWard({ rules: rulesOf([byLastSeen]) });
  ward.daemon.clock.step(100 * HOUR_MS);
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(40 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});
