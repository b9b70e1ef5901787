import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { FaultKind } from "../../../src/config/schema/scenario.ts";
import { defaultServiceOptions } from "../../../src/simulator/default-scenarios.ts";
import { rateLimitedCount } from "../../../src/simulator/http/service.ts";
import {
  createPlanLimits,
  everyMinuteSettings,
  startVirtualDaemon,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../../harness/run-length.ts";

const PER_MINUTE = 40;
const WARM_UP_MS = 20 * MINUTE_MS;
const HOURS = isLongRun ? 1 : 0.5;

test.each(isLongRun ? [undefined, 5] : [undefined])(
  "adapts to a gateway that allows 40 calls a minute (Retry-After: %s)",
  async (seconds) => {
    const limit = { kind: "gateway_limit", requestsPerMinute: PER_MINUTE, burst: 10 } as const;
    const fault: FaultKind = seconds === undefined ? limit : { ...limit, retryAfter: seconds };
    const daemon = await startVirtualDaemon({
      scenario: {
        nodes: 150,
        sessions: 150,
        faults: [{ afterMs: 0, forMs: WARM_UP_MS + HOURS * HOUR_MS, fault }],
        service: { ...defaultServiceOptions, plan: "enterprise" },
      },
      // Details alone would take 100 calls a minute.
      settings: {
        limits: createPlanLimits("enterprise"),
        schedules: { ...everyMinuteSettings.schedules, details: { kind: "every", intervalMs: 1.5 * MINUTE_MS } },
      },
    });
    const { clock, service, rateLimiter, snapshots } = daemon;
    const during = async (ms: number) => {
      const [calls, refused] = [service.serial, rateLimitedCount(service)];
      await clock.advance(ms);
      const refusedSince = rateLimitedCount(service) - refused;
      return { refused: refusedSince, admitted: service.serial - calls - refusedSince };
    };
    await during(WARM_UP_MS);
    const { refused, admitted } = await during(HOURS * HOUR_MS - 1);
    expect(refused / (refused + admitted)).toBeLessThan(0.01);
    expect(admitted).toBeGreaterThan(0.85 * PER_MINUTE * 60 * HOURS);
    expect(snapshots.last!.fleet.lastWalk).toMatchObject({ complete: true });
    expect(rateLimiter.learnedLimits().node_management).toBeLessThan(1.2 * PER_MINUTE);
    // Without the gateway the learned limit is lifted. The tests of the rate limiter also show this.
    if (isLongRun) {
      expect((await during(60 * MINUTE_MS)).refused).toBe(0);
      expect((await during(10 * MINUTE_MS)).admitted).toBeGreaterThan(75 * 10);
    }
    await stopVirtualDaemon(daemon);
  },
);
