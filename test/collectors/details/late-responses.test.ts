import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { CollectionSettings } from "../../../src/collectors/collector-manager.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import { noFailureRates } from "../../harness/daemon/quiet-network.ts";
import {
  createPlanLimits,
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { actualNodes } from "../../harness/simulator/actual-state.ts";
import { createInterventions } from "../../harness/simulator/interventions.ts";

/** Reads the nodes and their details every minute, and nothing else. */
const settings: Partial<CollectionSettings> = {
  limits: createPlanLimits("enterprise"),
  schedules: {
    ...everyMinuteSettings.schedules,
    details: { kind: "every", intervalMs: MINUTE_MS },
    sessions: null,
    stats: null,
    hourly: null,
  },
};

test("a detail whose response is delayed does not replace a later list record", async () => {
  const scenario = { nodes: 50, sessions: 20, rates: noFailureRates };
  const daemon = await startVirtualDaemon({ scenario, settings });
  await daemon.clock.advance(4 * MINUTE_MS);
  // A detail then takes some seconds, but less than the timeout.
  const slow = { kind: "slow_drip", bytesPerSecond: 60 } as const;
  const afterMs = daemon.clock.monotonic();
  daemon.service.setFaults([{ afterMs, forMs: HOUR_MS, match: "GET /v1/nodes/", fault: slow }]);
  await daemon.clock.advance(MINUTE_MS);
  // The nodes fail shortly before a walk.
  const walkedAt = daemon.collected.lastStarts.get("nodes")!.monotonic;
  await daemon.clock.advance(walkedAt + 2 * MINUTE_MS - 2 * SECOND_MS - daemon.clock.monotonic());
  const interventions = createInterventions(daemon.service, () => START_MS + daemon.clock.monotonic());
  const failed = [...actualNodes(daemon.service)].map(({ id }) => id);
  for (const id of failed) interventions.startFailure(id, { failureMode: "outage", remedy: "reboot" });
  const offline = new Set<string>();
  for (let second = 0; second < 150; second++) {
    await daemon.clock.advance(SECOND_MS);
    const { ids, status } = daemon.snapshots.last!.fleet;
    for (const [slot, id] of ids.entries()) {
      const isOffline = NODE_STATUSES[status[slot]!] === "offline";
      if (isOffline) offline.add(id);
      expect({ id, isOffline }).toEqual({ id, isOffline: offline.has(id) });
    }
  }
  expect(offline.size).toBe(failed.length);
  await stopVirtualDaemon(daemon);
});
