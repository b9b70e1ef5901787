import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import type { Notification, Receiver } from "../../../src/model/remediation/notification.ts";
import { startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";

const closesEpisode = (change: JournalChange) => change.kind === "episode" && change.row.closedAt !== null;
const resolvesStorm = (change: JournalChange) =>
  change.kind === "fact" && change.key === "remediation.unresolved_alerts" && !change.value!.includes("storm/");

/** Limits with storms only, without circuit breaker and incidents. */
const onlyStorms = {
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
} as const;

test.each([
  ["the episode closes", closesEpisode],
  ["the storm is over", resolvesStorm],
] as const)(
  "what was not delivered is resolved although the daemon is killed at the commit when %s",
  async (_, isLast) => {
    const received: Notification[] = [];
    let isUp = false;
    const receiver: Receiver = {
      name: "oncall",
      repeatMs: MINUTE_MS,
      send(sent) {
        if (isUp) received.push(...sent);
        return Promise.resolve(isUp ? { ok: true } : { ok: false, error: "down", isFinal: false });
      },
    };
    const network = await startQuietNetwork({
      config: remediationConfig([rebootOffline({ steps: [steps.reboot] })], onlyStorms),
      receivers: [receiver],
    });
    const [node, ...others] = network.nodes();
    if (isLast === closesEpisode) network.failNode(node!);
    else {
      const recoverAt = network.daemon.clock.now() + 20 * MINUTE_MS;
      for (const other of others.slice(0, 20))
        network.interventions.startFailure(other, { failureMode: "outage", remedy: "time", recoverAt });
    }
    await network.advance(10 * MINUTE_MS);
    network.injectedFailures.crashAt = { when: "after", changes: (changes) => changes.some(isLast) };
    await network.advanceUntil(() => !network.isAlive());
    isUp = true;
    await network.restart();
    await network.advance(5 * MINUTE_MS);
    expect(received.length).toBeGreaterThan(0);
    expect(network.daemon.notifier.activeNotifications()).toEqual([]);
    const last = new Map(received.map((notification) => [notification.key, notification]));
    expect([...last.values()].filter(({ endsAt }) => endsAt === null)).toEqual([]);
  },
);
