import type { ApiClient } from "../api-client/client.ts";
import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { fail } from "../base/result.ts";
import type { Clock } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { RunBudget } from "../rate-limit/monthly-budget.ts";
import type { CollectorPlan } from "../scheduling/planner.ts";
import { sleepStep } from "./schedule.ts";

/** The current or last run of a collector. */
export interface CollectorRun {
  readonly startedAt: MonotonicMs;
  /** Calls made so far, not counting retries. */
  callsMade: number;
  isOver: boolean;
}

/** Dependencies of a paced run. */
interface RunPaceDeps {
  readonly clock: Clock;
  readonly budget: RunBudget;
  /** Current plan of the run's collector. */
  readonly plan: () => CollectorPlan | null;
}

/**
 * Returns a client for one run. If the month limits polling, calls beyond {@link RunBudget.callsAtOnce} are sent at the
 * planned rate. A call beyond {@link RunBudget.calls} fails with the kind `budget` without being sent.
 */
export function pacedClient(client: ApiClient, run: CollectorRun, { clock, budget, plan }: RunPaceDeps): ApiClient {
  let lastAt: MonotonicMs = run.startedAt;

  async function waitForTurn(signal: AbortSignal): Promise<void> {
    for (;;) {
      const wait = lastAt + callSpacingMs(plan()) - clock.monotonic();
      if (signal.aborted || wait <= 0) break;
      await sleepStep(clock, wait, signal);
    }
    lastAt = clock.monotonic();
  }

  return {
    ...client,
    async get(call, lane, signal, onSending) {
      if (run.callsMade >= budget.calls) {
        const message = `the run has made ${run.callsMade} calls, its share of the calls left in the month`;
        return fail({ kind: "budget", message });
      }
      run.callsMade++;
      if (run.callsMade > budget.callsAtOnce) await waitForTurn(signal);
      return client.get(call, lane, signal, onSending);
    },
  };
}

/** Returns the planned time between two calls of a collector. If no calls are left, the rate limiter decides. */
const callSpacingMs = (planned: CollectorPlan | null): DurationMs =>
  planned?.boundBy === "month" && planned.callsPerMinute > 0 ? MINUTE_MS / planned.callsPerMinute : 0;
