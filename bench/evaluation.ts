import { HOUR_MS } from "../src/base/duration.ts";
import { NumberColumn } from "../src/base/number-column.ts";
import { createMemoryStateStore } from "../src/journal/sqlite/store.ts";
import type { Fleet } from "../src/model/snapshot.ts";
import { systemClock } from "../src/platform/clock.ts";
import { silentLog } from "../src/platform/log.ts";
import { PolicyEvaluator } from "../src/remediation/evaluation/policy-evaluator.ts";
import { ObservedFleet } from "../src/remediation/observed-fleet.ts";
import { PolicySet } from "../src/remediation/policy-set.ts";
import { openRemediationState } from "../src/remediation/state/journaled-state.ts";
import { rebootOffline, remediationConfig } from "../test/harness/policies.ts";
import { measure, median } from "./bench-process.ts";
import { createFleetSource, inputOf } from "./fleet.ts";

/** CPU time and longest slice of an evaluation of 20 policies; medians of the rounds. */
export interface EvaluationResult {
  readonly share: number;
  readonly cpuMs: number;
  readonly gapMs: number;
}

/** Targets if 5% of the nodes were observed again. */
export const EVALUATION_CPU_MS_MAX = 150;
export const EVALUATION_GAP_MS_MAX = 5;

const NODES = 100_000;
const ROUNDS = 15;
const WARM_UP_ROUNDS = 5;

/**
 * Typical conditions: on fields of the list and of details, on times, and relative to the fleet. Few nodes meet each.
 */
const CONDITIONS = [
  'node.status == "offline" && node.uptime_hours < 100',
  'node.status == "online" && node.cpu_usage > 0.95 && node.cpu_usage > fleet.median.cpu_usage + 0.3',
  'node.uptime_hours < 20 && now - node.last_seen < duration("10m")',
  'node.status == "online" && node.disk_usage > 0.95',
  'node.status == "rebooting" && region.online_ratio > 0.5 && node.active_sessions > 280',
];
const POLICIES = Array.from({ length: 20 }, (_, index) =>
  rebootOffline({ name: `policy-${index}`, when: CONDITIONS[index % CONDITIONS.length]! }),
);

const fresh = { freshMs: HOUR_MS } as const;

/** Measures evaluations after all nodes, and after one in twenty, were observed again. */
export async function benchEvaluation(): Promise<EvaluationResult[]> {
  const store = createMemoryStateStore();
  const remediationState = await openRemediationState({
    journal: store.journal,
    clock: systemClock,
    log: silentLog,
    lostReason: null,
  });
  const observed = new ObservedFleet({ serviceTime: (at) => at });
  const policies = new PolicySet(remediationConfig(POLICIES), remediationState.records);
  const evaluator = new PolicyEvaluator(
    { clock: systemClock, log: silentLog, observed, policies, remediationState },
    { recordChanges: () => [] },
  );
  const source = createFleetSource(NODES);
  let previous = source.next(1);

  async function evaluate(share: number) {
    previous = observedAgain(source.next(share), previous, share, systemClock.monotonic());
    const { snapshot } = inputOf(previous, systemClock.monotonic());
    const plan = { nodes: fresh, details: fresh, sessions: fresh, stats: null, hourly: null };
    observed.latest = { snapshot, plan: plan as never };
    const before = process.threadCpuUsage();
    const { gapMs } = await measure(() => evaluator.evaluate(new Set()));
    const { user, system } = process.threadCpuUsage(before);
    return { cpuMs: (user + system) / 1_000, gapMs };
  }

  const results: EvaluationResult[] = [];
  for (const share of [1, 0.05]) {
    const rounds: Awaited<ReturnType<typeof evaluate>>[] = [];
    for (let round = 0; round < ROUNDS + WARM_UP_ROUNDS; round++) rounds.push(await evaluate(share));
    const measured = rounds.slice(WARM_UP_ROUNDS);
    results.push({
      share,
      cpuMs: median(measured.map(({ cpuMs }) => cpuMs)),
      gapMs: median(measured.map(({ gapMs }) => gapMs)),
    });
  }
  await store.close();
  return results;
}

/**
 * Returns the fleet with `share` of its nodes observed at `now`, and the others when they were observed in `previous`.
 */
function observedAgain(fleet: Fleet, previous: Fleet, share: number, now: number): Fleet {
  const every = Math.round(1 / share);
  const listedAt = NumberColumn.from(Array.from(previous.listedAt, (at, slot) => (slot % every === 0 ? now : at)));
  return { ...fleet, listedAt, detailedAt: listedAt, settledAt: 0 };
}
