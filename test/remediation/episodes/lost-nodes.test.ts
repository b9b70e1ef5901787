import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Scenario } from "../../../src/model/scenario.ts";
import { courses, heldBy, told } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, type usualSafety } from "../../harness/policies.ts";
import { oneOfEach, quietRates, startWard, type WardOptions, type WardRun } from "../../harness/quiet-network.ts";

const NODES = 200;

/** A network in which a reboot takes a node out of the fleet, for good or for a while. */
const vanishing = ({ forMs = Number.POSITIVE_INFINITY, share = 1 } = {}): Partial<Scenario> => ({
  nodes: NODES,
  rates: quietRates,
  churn: {
    joinEveryMs: Number.POSITIVE_INFINITY,
    leaveEveryMs: Number.POSITIVE_INFINITY,
    vanishAfterReboot: share,
    vanishForMs: forMs,
    reuseIds: false,
  },
});

const rule = rebootOffline({ retry: { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 4 * HOUR_MS } });

const startVanishing = (safety: Partial<typeof usualSafety>, options: Partial<WardOptions> = {}) =>
  startWard({ rules: rulesOf([rule], safety), scenario: vanishing(), ...options });

/** Nodes that the service does not list any more. */
const lost = (ward: WardRun): number => NODES - ward.nodes().length;

/** A node falls ill every ten minutes, each far from the one before in the list. Returns the most nodes lost at once. */
async function fallIllOneByOne(ward: WardRun, count: number): Promise<number> {
  const all = ward.nodes();
  let most = 0;
  for (let index = 0; index < count; index++) {
    ward.fell(all[(index * 37) % all.length]!);
    await ward.pass(10 * MINUTE_MS);
    most = Math.max(most, lost(ward));
  }
  return most;
}

describe("nodes that leave the list after an action", () => {
  test("count as disrupted until they are back: no more are lost at once than max_disrupted", async () => {
    const ward = await startVanishing({ canary: false });
    expect(await fallIllOneByOne(ward, 12)).toBe(5);
    // Longer than forget_after.
    await ward.pass(5 * HOUR_MS);
    expect(lost(ward)).toBe(5);
    expect(heldBy(ward)).toContain("disrupted");
    expect(ward.actions().filter(({ outcome }) => outcome === "ineffective")).toHaveLength(5);
    expect(told(ward, "lost")).toHaveLength(5);
    await ward.stop();
  });

  test("count once their policy is proven, too", async () => {
    const ward = await startVanishing({}, { scenario: vanishing({ share: 0.5 }) });
    expect(await fallIllOneByOne(ward, 12)).toBeLessThanOrEqual(5);
    expect(courses(ward)).toContain("healed");
    await ward.stop();
  });

  test("count in the limits of their own region, and in its denominators", async () => {
    const ward = await startVanishing({ canary: false });
    const [first, second] = ward.nodes("us-east");
    ward.fell(first!);
    await ward.pass(30 * MINUTE_MS);
    expect(lost(ward)).toBe(1);
    ward.fell(second!);
    await ward.pass(5 * HOUR_MS);
    expect(ward.postCount()).toBe(1);
    expect(ward.reasons(second!)).toEqual(["disrupted_domain"]);
    await ward.stop();
  });

  test("stay in flight until the time of their step is up, and fail then", async () => {
    const ward = await startVanishing({
      canary: false,
      maxInFlight: 1,
      maxDisruptedPer: { region: null, country: null },
    });
    const [first, second] = ward.nodes("us-east");
    ward.fell(first!);
    await ward.passUntil(() => lost(ward) === 1);
    ward.fell(second!);
    await ward.passUntil(() => ward.postCount() === 2);
    const [one, two] = ward.actions();
    expect(one).toMatchObject({ outcome: "ineffective", detail: "the node left the list" });
    expect(two!.sentAt! - one!.sentAt!).toBeGreaterThanOrEqual(10 * MINUTE_MS);
    await ward.stop();
  });

  test("are failures of their policy: too many of them make it fall back to dry_run", async () => {
    const efficacy = { window: 3, minSuccess: 0.5 };
    const ward = await startVanishing({ canary: false, efficacy });
    expect(await fallIllOneByOne(ward, 8)).toBe(3);
    expect(told(ward, "efficacy")).toHaveLength(1);
    await ward.stop();
  });

  test("open the breaker with those that fire", async () => {
    const breaker = { share: 0, amount: 3, withinMs: HOUR_MS };
    const ward = await startVanishing({ canary: false, breaker });
    for (const node of oneOfEach(ward, 3)) ward.fell(node);
    // Those that fired have left the hour by the next firing; the losses have not.
    await ward.pass(62 * MINUTE_MS);
    expect(ward.warden().view.status().breaker).toBeNull();
    expect(lost(ward)).toBe(3);
    ward.fell(ward.nodes()[100]!);
    await ward.pass(20 * MINUTE_MS);
    expect(ward.warden().view.status().breaker).not.toBeNull();
    await ward.stop();
  });

  test("count no more once they are back, and their episode goes on", async () => {
    const ward = await startVanishing({ canary: false }, { scenario: vanishing({ forMs: 3 * HOUR_MS }) });
    const [first, second] = ward.nodes("us-east");
    ward.fell(first!);
    await ward.pass(HOUR_MS);
    ward.fell(second!);
    await ward.pass(HOUR_MS);
    expect(ward.postCount()).toBe(1);
    await ward.passUntil(() => ward.postCount() === 2);
    expect(ward.nodes()).toContain(first);
    await ward.pass(15 * MINUTE_MS);
    expect(ward.episodes()[0]).toMatchObject({ state: "cleared" });
    await ward.stop();
  });

  test("count no more once an operator accepts the loss, also after a restart", async () => {
    const ward = await startVanishing({ canary: false });
    const [first, second] = ward.nodes("us-east");
    ward.fell(first!);
    await ward.pass(HOUR_MS);
    await ward.restart();
    ward.fell(second!);
    await ward.pass(HOUR_MS);
    expect(ward.postCount()).toBe(1);
    const said = ward.warden().orders.acceptInventory();
    expect(said).toMatchObject({ ok: true, value: expect.stringContaining("the loss of 1") });
    await ward.pass(30 * MINUTE_MS);
    expect(ward.postCount()).toBe(2);
    expect(courses(ward)).toEqual(["withdrawn", "suspended"]);
    await ward.stop();
  });
});
