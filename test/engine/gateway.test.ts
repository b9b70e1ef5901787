import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { FaultKind } from "../../src/model/scenario.ts";
import { rateLimitedCount } from "../../src/simulator/inspection.ts";
import { startDaemon, stopDaemon } from "./daemon.ts";

const WARM_UP_HOURS = 1;
const HOURS = 4;
const PER_MINUTE = 40;

test.each([undefined, 5])("hours behind a gateway that allows 40 calls a minute (Retry-After: %s)", async (seconds) => {
  const limit = { kind: "gateway_limit", requestsPerMinute: PER_MINUTE, burst: 10 } as const;
  const fault: FaultKind = seconds === undefined ? limit : { ...limit, retryAfterSeconds: seconds };
  // Details alone would take 133 calls a minute.
  const scenario = { nodes: 2_000, sessions: 2_000, faults: [{ afterMs: 0, forMs: HOURS * HOUR_MS, fault }] };
  const daemon = startDaemon({ scenario });
  const { clock, service, office, snapshots } = daemon;
  await clock.advance(WARM_UP_HOURS * HOUR_MS);
  const [calls, refused] = [service.serial, rateLimitedCount(service)];
  await clock.advance((HOURS - WARM_UP_HOURS) * HOUR_MS - 1);
  const [made, refusedSince] = [service.serial - calls, rateLimitedCount(service) - refused];
  expect(refusedSince / made).toBeLessThan(0.01);
  expect(made - refusedSince).toBeGreaterThan(0.85 * PER_MINUTE * 60 * (HOURS - WARM_UP_HOURS));
  expect(snapshots.last!.fleet.lastWalk).toMatchObject({ complete: true });
  expect(office.learned().node_management).toBeLessThan(PER_MINUTE * 1.2);
  // The gateway is gone: what was learned is given back.
  await clock.advance(2 * HOUR_MS);
  const before = service.serial;
  await clock.advance(10 * MINUTE_MS);
  expect(service.serial - before).toBeGreaterThan(70 * 10);
  await stopDaemon(daemon);
});
