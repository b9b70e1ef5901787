import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { CollectorPlan } from "../budget/planner.ts";
import type { NodeId } from "../model/node.ts";
import type { Clock } from "../model/ports.ts";
import type { ServiceClient } from "../service/client.ts";
import { readNode } from "../service/endpoints.ts";
import { readNodeDetail } from "../service/wire.ts";
import type { Account, Outcome } from "./account.ts";
import type { DetailTurn, Inventory } from "./inventory.ts";
import { nap } from "./schedule.ts";

/** What detail reads stand on. */
export interface DetailParts {
  readonly client: ServiceClient;
  readonly clock: Clock;
  readonly account: Account;
  readonly inventory: Inventory;
  /** The plan of details in force; null: none are read. */
  readonly plan: () => CollectorPlan | null;
  /** Told after each read. */
  readonly onRead: () => void;
}

/** Detail reads under way at once: enough to keep pace on a slow service. */
const READS_IN_FLIGHT_MAX = 4;
/** With nothing to read, or no plan, it is looked again after this. */
const IDLE_MS: DurationMs = SECOND_MS;
/** While there are nodes never tried and no limit binds, reads come this much faster than the wish asks for. */
const CATCH_UP = 3;
/** After so many failed reads in a row each further one doubles the spacing, up to the most. */
const FAILURES_IN_PASSING = 4;
const SPACING_MS_MAX: DurationMs = 5 * MINUTE_MS;

/**
 * Reads details, earliest deadline first, evenly spread over the planned round, until `signal` aborts. Where no limit
 * binds, suspects are read beside the round, and where one does, in place of a part of it.
 */
export async function readDetails(parts: DetailParts, signal: AbortSignal): Promise<void> {
  const { clock, inventory } = parts;
  const reads = new Map<NodeId, Promise<void>>();
  let last = clock.monotonic();
  let failures = 0;
  while (!signal.aborted) {
    // Asked for anew at each look: the plan and the fleet move.
    const planned = parts.plan();
    if (planned === null || inventory.count() === 0) {
      await nap(clock, IDLE_MS, signal);
      continue;
    }
    const spacing = slowed(spacingOf(planned, inventory), failures);
    // Where no limit binds, a suspect need not wait for the place of another read.
    const isFree = planned.boundBy === null && failures === 0;
    const wait =
      Math.min(last + spacing, isFree ? inventory.suspectAt() : Number.POSITIVE_INFINITY) - clock.monotonic();
    if (wait > 0) {
      await nap(clock, wait, signal);
      continue;
    }
    if (reads.size >= READS_IN_FLIGHT_MAX) await Promise.race(reads.values());
    if (signal.aborted) break;
    const turn = inventory.takeDetail(clock.monotonic(), planned.intervalMs);
    const isBeside = isFree && turn !== null && turn.cause !== null;
    // A late read is made up for once; more would come as a burst.
    if (!isBeside) last = Math.max(last + spacing, clock.monotonic() - spacing);
    if (turn === null || reads.has(turn.id)) continue;
    reads.set(
      turn.id,
      readOne(parts, turn, signal).then((succeeded) => {
        failures = succeeded ? 0 : failures + 1;
        reads.delete(turn.id);
      }),
    );
  }
  await Promise.all(reads.values());
}

function spacingOf(planned: CollectorPlan, inventory: Inventory): DurationMs {
  const spacing = planned.intervalMs / inventory.count();
  return inventory.hasUntried() && planned.boundBy === null ? spacing / CATCH_UP : spacing;
}

/** A service that is down, or a key that is refused, is not asked at full pace for as long as that lasts. */
function slowed(spacing: DurationMs, failures: number): DurationMs {
  const doublings = Math.min(20, Math.max(0, failures - FAILURES_IN_PASSING));
  return Math.max(spacing, Math.min(SPACING_MS_MAX, spacing * 2 ** doublings));
}

async function readOne(parts: DetailParts, turn: DetailTurn, signal: AbortSignal): Promise<boolean> {
  const succeeded = await parts.account.run(() => collectDetail(parts, turn, signal));
  parts.onRead();
  return succeeded;
}

async function collectDetail(parts: DetailParts, { id, cause }: DetailTurn, signal: AbortSignal): Promise<Outcome> {
  const { client, clock, account, inventory } = parts;
  const answer = await client.get(readNode(id), cause === null ? "detail" : "suspect", signal);
  if (!answer.ok) return { complete: false, error: answer.error };
  const detail = readNodeDetail(answer.value.json, account.remark);
  if (detail === null || detail.id !== id) {
    const problem = detail === null ? "is no node that can be read" : `speaks of ${JSON.stringify(detail.id)}`;
    return {
      complete: false,
      error: { kind: "wrong_shape", message: `the detail of ${JSON.stringify(id)} ${problem}` },
    };
  }
  if (inventory.detail(detail, answer.value.at, clock.now()) === "contradicts") {
    account.remark({
      reason: "usage_out_of_scale",
      id,
      detail: "a usage contradicts service.usage_scale: all usage is unknown until the scale is corrected",
    });
  }
  return { complete: inventory.isDetailed(), error: null };
}
