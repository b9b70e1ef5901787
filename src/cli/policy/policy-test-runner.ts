import { createApiClient } from "../../api-client/client.ts";
import { RateLimiter } from "../../api-client/rate-limiter.ts";
import { ServiceClock } from "../../api-client/service-clock.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { seededRandom } from "../../base/random.ts";
import { ok } from "../../base/result.ts";
import { runAtOnce } from "../../base/steps.ts";
import { createCollectedState } from "../../collectors/collected-state.ts";
import { type CollectionSettings, startCollectorManager } from "../../collectors/collector-manager.ts";
import type { Expectation, PolicyTest } from "../../config/schema/policy-test.ts";
import { createMemoryStateStore } from "../../journal/sqlite/store.ts";
import { createDaemonMetrics } from "../../metrics/daemon-metrics.ts";
import { valueAt } from "../../model/policy/series.ts";
import type { ExternalBlockers, Log } from "../../model/ports.ts";
import { Notifier } from "../../notify/notifier.ts";
import { createFailureLog } from "../../platform/log.ts";
import { inlineSecret } from "../../platform/secret-file.ts";
import { configuredExpressions, expressionSources } from "../../policy/policy.ts";
import { findMismatches, type ObservedOutcome } from "../../policy/policy-test-expectation.ts";
import { effectiveReserve, type Limits, PLANS } from "../../rate-limit/limits.ts";
import type { RemediationConfig } from "../../remediation/context.ts";
import { RemediationController } from "../../remediation/controller.ts";
import { openRemediationState } from "../../remediation/state/journaled-state.ts";
import { createVirtualClock, type VirtualClock } from "../../simulator/clock.ts";
import { createScriptedTransport } from "../../simulator/scripted-service.ts";

/** An expectation that was not met. */
export interface FailedExpectation {
  /** Index in the expectations of the test. */
  readonly index: number;
  readonly expected: Expectation;
  readonly lines: readonly string[];
}

/** Virtual time for the daemon to stop after a test. */
const STOP_TIME_MS: DurationMs = MINUTE_MS;
const TIMEOUT_MS: DurationMs = 10 * SECOND_MS;
const ACTIONS_MAX = 1_000;
/** Number of calls that no test reaches, because these tests are about policies, not rate limits. */
const CALLS = 1_000_000;
const SEED = 1;

const limits: Limits = {
  categories: {
    node_management: { requests: CALLS, burst: CALLS, windowMs: MINUTE_MS },
    session_monitoring: { requests: CALLS, burst: CALLS, windowMs: MINUTE_MS },
  },
  plan: PLANS.enterprise,
  reserve: effectiveReserve(0),
};

/**
 * Runs one policy test: collectors and remediation on virtual time, against a simulated service that shows the test's
 * fleet. Returns the expectations that were not met, ordered by time. Rejects with the first exception that the
 * daemon logged.
 */
export async function runPolicyTest(
  test: PolicyTest,
  config: RemediationConfig,
): Promise<readonly FailedExpectation[]> {
  const clock = createVirtualClock(test.startsAt);
  const log = createFailureLog();
  const engine = await startEngine(test, config, clock, log);
  const failures: FailedExpectation[] = [];
  const inOrder = test.expectations.map((expected, index) => ({ expected, index }));
  for (const { expected, index } of inOrder.toSorted((a, b) => a.expected.atMs - b.expected.atMs)) {
    await clock.advance(expected.atMs - clock.monotonic());
    const lines = findMismatches(expected, await observedOutcome(engine.controller, expected));
    if (lines.length > 0) failures.push({ index, expected, lines });
  }
  const stopped = engine.stop();
  await clock.advance(STOP_TIME_MS);
  await stopped;
  log.throwFirst();
  return failures;
}

async function startEngine(test: PolicyTest, config: RemediationConfig, clock: VirtualClock, log: Log) {
  const random = seededRandom(SEED);
  const metrics = createDaemonMetrics({ process: false });
  const store = createMemoryStateStore();
  const settings = settingsOf(test, config);
  const rateLimiter = new RateLimiter({
    limits,
    clock,
    random,
    log,
    monthStartsOn: settings.monthStartsOn,
    calls: store.calls,
  });
  const client = createApiClient({
    clock,
    random,
    rateLimiter,
    serviceClock: new ServiceClock(),
    transport: createScriptedTransport(test, clock),
    secret: inlineSecret("policy-test"),
    timeoutMs: TIMEOUT_MS,
    agent: "proxywarden",
  });
  const remediationState = await openRemediationState({ journal: store.journal, clock, log, lostReason: null });
  const collected = createCollectedState(settings, remediationState.facts, { clock, log, metrics });
  const collectorManager = startCollectorManager({
    settings,
    collected,
    client,
    rateLimiter,
    clock,
    random,
    metrics,
    log,
  });
  const controller = new RemediationController({
    config,
    client,
    rateLimiter,
    clock,
    metrics,
    log,
    remediationState,
    serviceUrl: "https://policy-test.invalid",
    journal: store.journal,
    inventory: collected.inventory,
    sessionWalks: collected.sessionWalks,
    detailReporter: collected.reporters.details,
    notifier: new Notifier({ receivers: [], clock, random, log, metrics }),
    externalBlockers: externalBlockersOf(test, clock.monotonic),
    onRead: collectorManager.markChanged,
  });
  collectorManager.setListener((snapshot, plan) => controller.update(snapshot, plan));
  return {
    controller,
    stop: () => Promise.all([controller.stop(0), collectorManager.stop()]).finally(() => store.close()),
  };
}

/** Returns settings that collect only the list of nodes and what the policies and `safety.protected` read. */
function settingsOf({ intervalMs }: PolicyTest, { policies, safety }: RemediationConfig): CollectionSettings {
  const read = new Set(expressionSources(configuredExpressions(policies, safety)));
  const every = { kind: "every", intervalMs } as const;
  return {
    schedules: {
      nodes: every,
      details: read.has("details") ? every : null,
      sessions: read.has("sessions") ? every : null,
      stats: null,
      hourly: null,
    },
    limits,
    monthStartsOn: 1,
    pageLimit: 1_000,
    usageScale: "ratio",
    maxMissing: 0,
    minInventory: 0,
    reads: read,
  };
}

const externalBlockersOf = ({ blocked }: PolicyTest, elapsed: () => DurationMs): ExternalBlockers => ({
  blocks: () => Promise.resolve(ok(valueAt(blocked, elapsed()))),
});

/** The outcome for a node that no walk has shown yet. */
const UNREAD_NODE: ObservedOutcome = {
  verdict: "unknown",
  unknowns: ["the node has not been read"],
  timer: "inactive",
  blockers: [],
  actions: [],
};

async function observedOutcome(
  { view }: RemediationController,
  { node, policy }: Expectation,
): Promise<ObservedOutcome> {
  const explained = runAtOnce(view.explain(node)).policies.find((row) => row.policy === policy);
  if (explained === undefined) return UNREAD_NODE;
  return {
    verdict: explained.verdict,
    unknowns: explained.unknowns.map(({ field, why }) => `${field}: ${why}`),
    timer: explained.timer?.state ?? "inactive",
    blockers: explained.blockers,
    actions: (await view.actions({ node, limit: ACTIONS_MAX }))
      .filter((action) => action.policy === policy)
      .toReversed(),
  };
}
