import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import { seededRandom } from "../../base/random.ts";
import { ok } from "../../base/result.ts";
import { type Limits, PLANS } from "../../rate-limit/limits.ts";
import { openBooks } from "../../remediation/state/journaled-state.ts";
import { createNotifier } from "../../notify/notifier.ts";
import type { Rules } from "../../remediation/context.ts";
import { startWarden, type Warden } from "../../remediation/controller.ts";
import { createSight, startWatch, type Watch, type WatchSettings } from "../../collectors/collector-manager.ts";
import { createWardenMetrics } from "../../metrics/daemon-metrics.ts";
import type { Expectation, PolicyTest } from "../../model/policy/policy-test.ts";
import { valueAt } from "../../model/policy/policy-test.ts";
import type { Log, Obstacles } from "../../model/ports.ts";
import { type Seen, shortfalls } from "../../policy/test-expectation.ts";
import { compilePolicy, sourcesIn } from "../../policy/policy.ts";
import { createClient } from "../../api-client/client.ts";
import { createPermitOffice } from "../../api-client/rate-limiter.ts";
import { createServiceClock } from "../../api-client/service-clock.ts";
import { createVirtualClock, type VirtualClock } from "../../simulator/clock.ts";
import { createScriptedTransport } from "../../simulator/scripted-service.ts";
import { createMemoryStore } from "../../journal/sqlite.ts";
import { createBell } from "../../platform/cron.ts";
import { fixedSecret } from "../../platform/secret-file.ts";

/** An expectation that did not come true, and how. */
export interface Miss {
  /** Its index in the test. */
  readonly index: number;
  readonly expected: Expectation;
  readonly lines: readonly string[];
}

/** What an engine whose test is over is given to end. */
const LEAVE_MS: DurationMs = MINUTE_MS;
const TIMEOUT_MS: DurationMs = MINUTE_MS / 6;
const ROWS = 1_000;
/** A test is about policies: calls are as good as free. */
const CALLS = 1_000_000;
const SEED = 1;

const limits: Limits = {
  categories: {
    node_management: { requests: CALLS, burst: CALLS, windowMs: MINUTE_MS },
    session_monitoring: { requests: CALLS, burst: CALLS, windowMs: MINUTE_MS },
  },
  plan: PLANS.enterprise,
  reserve: 0,
};

/**
 * Runs one test of policies: the whole engine, on virtual time, over a service that shows the fleet as the test has it.
 * Gives every expectation that did not come true, in the order of their times. Rejects with a defect of ours.
 */
export async function rehearse(test: PolicyTest, rules: Rules): Promise<readonly Miss[]> {
  const clock = createVirtualClock(test.startsAt);
  const log = defectLog();
  const engine = startEngine(test, rules, clock, log);
  const misses: Miss[] = [];
  const inOrder = test.expectations.map((expected, index) => ({ expected, index }));
  for (const { expected, index } of inOrder.toSorted((a, b) => a.expected.atMs - b.expected.atMs)) {
    await clock.advance(expected.atMs - clock.monotonic());
    const lines = shortfalls(expected, seenOf(engine.warden, expected));
    if (lines.length > 0) misses.push({ index, expected, lines });
  }
  const stopped = engine.stop();
  await clock.advance(LEAVE_MS);
  await stopped;
  if (log.defect.found !== null) throw log.defect.found;
  return misses;
}

function startEngine(test: PolicyTest, rules: Rules, clock: VirtualClock, log: Log) {
  const random = seededRandom(SEED);
  const metrics = createWardenMetrics({ process: false });
  const store = createMemoryStore();
  const settings = settingsOf(test, rules);
  const office = createPermitOffice({
    ...{ limits, clock, random, log },
    monthStartsOn: settings.monthStartsOn,
    calls: store.calls,
    onWait: () => {},
  });
  const client = createClient({
    ...{ clock, random, office },
    serviceClock: createServiceClock(),
    transport: createScriptedTransport(test, clock),
    secret: fixedSecret("rehearsal"),
    timeoutMs: TIMEOUT_MS,
    observer: { called: () => {}, stated: () => {}, refused: () => {} },
    agent: "proxywarden",
  });
  const sight = createSight(settings, store.facts, { clock, log, metrics });
  const warden = startWarden({
    ...{ rules, client, clock, random, metrics, log },
    books: openBooks({ journal: store.journal, clock, log, lost: null }),
    serviceUrl: "https://policy-test.invalid",
    journal: store.journal,
    inventory: sight.inventory,
    notifier: createNotifier({ receivers: [], clock, random, log, metrics }),
    obstacles: obstaclesOf(test, clock.monotonic),
    onRead: () => watch.touch(),
  });
  const watch: Watch = startWatch({
    ...{ settings, sight, client, office, clock, random, metrics, log },
    facts: store.facts,
    bell: createBell(),
    onSnapshot: (snapshot, plan) => warden.see(snapshot, plan),
  });
  return { warden, stop: () => Promise.all([warden.stop(), watch.stop()]).finally(() => store.close()) };
}

/** Only what some policy reads is collected. */
function settingsOf({ intervalMs }: PolicyTest, { policies }: Rules): WatchSettings {
  const read = new Set(
    sourcesIn(policies.map(compilePolicy).flatMap(({ match, when, expects }) => [match, when, ...expects])),
  );
  const every = { kind: "every", intervalMs } as const;
  return {
    cadences: {
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
    reads: read,
  };
}

function obstaclesOf({ blocked }: PolicyTest, elapsed: () => DurationMs): Obstacles {
  const ask = () => Promise.resolve(ok(valueAt(blocked, elapsed())));
  return { query: ask, alerts: ask };
}

function seenOf({ view }: Warden, { node, policy }: Expectation): Seen {
  const explained = view.explain(node).policies.find((each) => each.policy === policy)!;
  return {
    verdict: explained.verdict,
    unknowns: explained.unknowns.map(({ field, why }) => `${field}: ${why}`),
    timer: explained.timer?.state ?? "inactive",
    held: explained.blockers,
    actions: view
      .actions({ node, limit: ROWS })
      .filter((action) => action.policy === policy)
      .toReversed(),
  };
}

/** A log that keeps nothing but the first defect of ours: what it left undone must not pass for nothing to do. */
function defectLog(): Log & { readonly defect: { found: unknown } } {
  const defect: { found: unknown } = { found: null };
  return {
    defect,
    debug() {},
    info() {},
    warn() {},
    error({ err }) {
      defect.found ??= err ?? null;
    },
  };
}
