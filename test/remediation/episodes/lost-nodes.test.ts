import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Scenario } from "../../../src/model/scenario.ts";
import { episodeLines, holdReasonsOf, notificationLines } from "../../harness/action-lines.ts";
import { type defaultSafety, rebootOffline, remediationRules } from "../../harness/policies.ts";
import {
  noFailureRates,
  onePerRegion,
  type QuietNetwork,
  type QuietNetworkOptions,
  startQuietNetwork,
} from "../../harness/quiet-network.ts";

const NODES = 200;

/** A network in which a reboot takes a node out of the fleet, for good or for a while. */
const vanishing = ({ forMs = Number.POSITIVE_INFINITY, share = 1 } = {}): Partial<Scenario> => ({
  nodes: NODES,
  rates: noFailureRates,
  churn: {
    joinEveryMs: Number.POSITIVE_INFINITY,
    leaveEveryMs: Number.POSITIVE_INFINITY,
    vanishAfterReboot: share,
    vanishForMs: forMs,
    reuseIds: false,
  },
});

const rule = rebootOffline({ retry: { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 4 * HOUR_MS } });

const startVanishing = (safety: Partial<typeof defaultSafety>, options: Partial<QuietNetworkOptions> = {}) =>
  startQuietNetwork({ rules: remediationRules([rule], safety), scenario: vanishing(), ...options });

/** Nodes that the service does not list any more. */
const lost = (context: QuietNetwork): number => NODES - context.nodes().length;

/** A node falls ill every ten minutes, each far from the one before in the list. Returns the most nodes lost at once. */
async function fallIllOneByOne(context: QuietNetwork, count: number): Promise<number> {
  const all = context.nodes();
  let most = 0;
  for (let index = 0; index < count; index++) {
    context.failedNodes(all[(index * 37) % all.length]!);
    await context.advance(10 * MINUTE_MS);
    most = Math.max(most, lost(context));
  }
  return most;
}

describe("nodes that leave the list after an action", () => {
  test("count as disrupted until they are back: no more are lost at once than max_disrupted", async () => {
    const context = await startVanishing({ canary: false });
    expect(await fallIllOneByOne(context, 12)).toBe(5);
    // Longer than forget_after.
    await context.advance(5 * HOUR_MS);
    expect(lost(context)).toBe(5);
    expect(holdReasonsOf(context)).toContain("disrupted");
    expect(context.actions().filter(({ outcome }) => outcome === "ineffective")).toHaveLength(5);
    expect(notificationLines(context, "lost")).toHaveLength(5);
    await context.stop();
  });

  test("count once their policy is proven, too", async () => {
    const context = await startVanishing({}, { scenario: vanishing({ share: 0.5 }) });
    expect(await fallIllOneByOne(context, 12)).toBeLessThanOrEqual(5);
    expect(episodeLines(context)).toContain("healed");
    await context.stop();
  });

  test("count in the limits of their own region, and in its denominators", async () => {
    const context = await startVanishing({ canary: false });
    const [first, second] = context.nodes("us-east");
    context.failedNodes(first!);
    await context.advance(30 * MINUTE_MS);
    expect(lost(context)).toBe(1);
    context.failedNodes(second!);
    await context.advance(5 * HOUR_MS);
    expect(context.postCount()).toBe(1);
    expect(context.holdReasons(second!)).toEqual(["disrupted_domain"]);
    await context.stop();
  });

  test("stay in flight until the time of their step is up, and fail then", async () => {
    const context = await startVanishing({
      canary: false,
      maxInFlight: 1,
      maxDisruptedPer: { region: null, country: null },
    });
    const [first, second] = context.nodes("us-east");
    context.failedNodes(first!);
    await context.advanceUntil(() => lost(context) === 1);
    context.failedNodes(second!);
    await context.advanceUntil(() => context.postCount() === 2);
    const [one, two] = context.actions();
    expect(one).toMatchObject({ outcome: "ineffective", detail: "the node left the list" });
    expect(two!.sentAt! - one!.sentAt!).toBeGreaterThanOrEqual(10 * MINUTE_MS);
    await context.stop();
  });

  test("are failures of their policy: too many of them make it fall back to dry_run", async () => {
    const efficacy = { window: 3, minSuccess: 0.5 };
    const context = await startVanishing({ canary: false, efficacy });
    expect(await fallIllOneByOne(context, 8)).toBe(3);
    expect(notificationLines(context, "efficacy")).toHaveLength(1);
    await context.stop();
  });

  test("open the breaker with those that fire", async () => {
    const breaker = { share: 0, amount: 3, withinMs: HOUR_MS };
    const context = await startVanishing({ canary: false, breaker });
    for (const node of onePerRegion(context, 3)) context.failedNodes(node);
    // Those that fired have left the hour by the next firing; the losses have not.
    await context.advance(62 * MINUTE_MS);
    expect(context.controller().view.status().breaker).toBeNull();
    expect(lost(context)).toBe(3);
    context.failedNodes(context.nodes()[100]!);
    await context.advance(20 * MINUTE_MS);
    expect(context.controller().view.status().breaker).not.toBeNull();
    await context.stop();
  });

  test("count no more once they are back, and their episode goes on", async () => {
    const context = await startVanishing({ canary: false }, { scenario: vanishing({ forMs: 3 * HOUR_MS }) });
    const [first, second] = context.nodes("us-east");
    context.failedNodes(first!);
    await context.advance(HOUR_MS);
    context.failedNodes(second!);
    await context.advance(HOUR_MS);
    expect(context.postCount()).toBe(1);
    await context.advanceUntil(() => context.postCount() === 2);
    expect(context.nodes()).toContain(first);
    await context.advance(15 * MINUTE_MS);
    expect(context.episodes()[0]).toMatchObject({ state: "cleared" });
    await context.stop();
  });

  test("count no more once an operator accepts the loss, also after a restart", async () => {
    const context = await startVanishing({ canary: false });
    const [first, second] = context.nodes("us-east");
    context.failedNodes(first!);
    await context.advance(HOUR_MS);
    await context.restart();
    context.failedNodes(second!);
    await context.advance(HOUR_MS);
    expect(context.postCount()).toBe(1);
    const reply = context.controller().operatorCommands.acceptInventory();
    expect(reply).toMatchObject({ ok: true, value: expect.stringContaining("the loss of 1") });
    await context.advance(30 * MINUTE_MS);
    expect(context.postCount()).toBe(2);
    expect(episodeLines(context)).toEqual(["withdrawn", "suspended"]);
    await context.stop();
  });
});
