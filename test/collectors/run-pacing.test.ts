import { expect, test } from "vitest";
import type { ApiClient } from "../../src/api-client/client.ts";
import { listNodesCall } from "../../src/api-client/endpoints.ts";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { ok } from "../../src/base/result.ts";
import { type CollectorRun, pacedClient } from "../../src/collectors/run-pacing.ts";
import type { CollectorPlan } from "../../src/scheduling/planner.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";

/** Makes calls of a run whose collector may make one a minute. Returns the time of each call sent, and each error. */
async function runCalls(calls: number, budget: { readonly callsAtOnce: number; readonly calls: number }) {
  const clock = createVirtualClock(0);
  const run: CollectorRun = { startedAt: 0, callsMade: 0, isOver: false };
  const sentAt: number[] = [];
  const get: ApiClient["get"] = async () => {
    sentAt.push(clock.monotonic());
    return ok({ body: {}, receivedAt: clock.monotonic() } as never);
  };
  const plan = { boundBy: "month", callsPerMinute: 1 } as CollectorPlan;
  const client = pacedClient({ get } as ApiClient, run, { clock, budget, plan: () => plan });
  const errors: string[] = [];
  const made = (async () => {
    for (let call = 0; call < calls; call++) {
      const answer = await client.get(listNodesCall({ page: 1, limit: 100 }), "walk", new AbortController().signal);
      if (!answer.ok) errors.push(`${answer.error.kind}: ${answer.error.message}`);
    }
  })();
  await clock.advance(calls * MINUTE_MS);
  await made;
  return { sentAt, errors };
}

test("calls beyond those at once are sent at the planned rate, and none beyond the budget of the run", async () => {
  const { sentAt, errors } = await runCalls(5, { callsAtOnce: 2, calls: 4 });
  expect(sentAt).toEqual([0, 0, MINUTE_MS, 2 * MINUTE_MS]);
  expect(errors).toEqual(["budget: the run has made 4 calls, its share of the calls left in the month"]);
});
