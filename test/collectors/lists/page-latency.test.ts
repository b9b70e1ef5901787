import { expect, test } from "vitest";
import type { ApiClient } from "../../../src/api-client/client.ts";
import { type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import { ok } from "../../../src/base/result.ts";
import { createCollectedState } from "../../../src/collectors/collected-state.ts";
import { collectNodes } from "../../../src/collectors/list-collectors.ts";
import { createDaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createRecordingLog, everyMinuteSettings, START_MS } from "../../harness/daemon/virtual-daemon.ts";

const LATENCY_MS: DurationMs = 50;

test("the wait of a page for its turn to be parsed does not count as latency", async () => {
  let now = 0;
  const clock = { ...createVirtualClock(START_MS), monotonic: () => now };
  const metrics = createDaemonMetrics({ process: false });
  const facts = { read: () => null, write() {} };
  const collected = createCollectedState(everyMinuteSettings, facts, { clock, log: createRecordingLog(), metrics });
  const client = {
    get(_call, _lane, _signal, onSending) {
      onSending!();
      const at = now;
      now += LATENCY_MS + SECOND_MS;
      const json = { data: [], pagination: { page: 1, limit: 100, total: 0 } };
      return Promise.resolve(ok({ json, at, receivedAt: at + LATENCY_MS }));
    },
  } as Pick<ApiClient, "get"> as ApiClient;
  const deps = { settings: everyMinuteSettings, collected, client, clock, metrics };
  await collectNodes(deps, new AbortController().signal);
  expect(collected.listBehavior.nodes.latency.meanMs()).toBe(LATENCY_MS);
});
