import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { planMonth } from "../budget/month.ts";
import type { LastRun } from "../budget/monthleft.ts";
import { callsOf, PLAN_BOUNDS, type Plan, type PlanInput, plan } from "../budget/planner.ts";
import type { WardenMetrics } from "../metrics/warden.ts";
import type { Clock, FactStore, Log } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import type { ServiceClient } from "../service/client.ts";
import type { PermitOffice } from "../service/permits.ts";

/** How much there is to be collected, by what was seen last. */
export interface Extent extends Pick<PlanInput, "nodes" | "nodePages" | "sessionPages"> {
  readonly sessions: number;
}

/** The plan in force: made anew as what it is made of moves. */
export interface Planning {
  current(): Plan;
  /** Makes the plan anew. */
  renew(): Plan;
  /** A run of a collector begins. What it calls by the client that is returned counts as its calls. */
  begin(collector: Collector): ServiceClient;
  /** It has ended. */
  end(collector: Collector): void;
  /** Extent of a collector's data was seen whole: from now on it counts, and no more what an earlier process saw. */
  settle(collector: "nodes" | "sessions"): void;
  /** How long a collector waits for its first run, for the sake of the month. */
  firstWait(collector: Collector): DurationMs;
}

/** What planning stands on. */
export interface PlanningParts {
  readonly wishes: PlanInput["wishes"];
  readonly limits: PlanInput["limits"];
  readonly reads: ReadonlySet<Collector>;
  readonly monthStartsOn: number;
  /** As far as this process has seen it. */
  readonly extent: () => Extent;
  readonly client: ServiceClient;
  readonly office: PermitOffice;
  readonly facts: FactStore;
  readonly clock: Clock;
  readonly metrics: WardenMetrics;
  readonly log: Log;
}

interface Run {
  readonly beganAt: MonotonicMs;
  made: number;
  isOver: boolean;
}

/** What is kept of the run that began last, for the process after this one. */
interface KeptRun {
  readonly at: EpochMs;
  readonly calls: number;
}

/**
 * Where the month is scarce a new process runs a collector once this share of its interval has passed since the last
 * process did. A process that is restarted over and over then spends the month at most so many times faster than
 * planned; as the plan slows down with what is left, the month still lasts to its end.
 */
const RESTART_SHARE = 0.25;

const runFact = (collector: Collector): string => `collect.${collector}.run`;
const EXTENT = "collect.extent";

/** A plan of what is known by now. */
export function createPlanning(parts: PlanningParts): Planning {
  const { clock, facts } = parts;
  const runs = new Map<Collector, Run>();
  const kept = new Map(COLLECTORS.map((collector) => [collector, keptRun(parts, collector)]));
  const before = extentKept(facts.read);
  const seen = { nodes: false, sessions: false };
  let isFailing = false;
  let current = made();

  function extentNow(): Extent {
    const now = parts.extent();
    const { nodes, nodePages } = seen.nodes ? now : larger(now, before);
    const { sessions, sessionPages } = seen.sessions ? now : larger(now, before);
    return { nodes, nodePages, sessions, sessionPages };
  }

  function runOf(collector: Collector): LastRun | null {
    const run = runs.get(collector);
    if (run !== undefined) {
      const { beganAt, made, isOver } = run;
      const calls = isOver ? made : Math.max(made, callsOf(collector, extentNow()));
      return { sinceMs: clock.monotonic() - beganAt, calls, made };
    }
    const last = kept.get(collector) ?? null;
    return last === null ? null : { sinceMs: Math.max(0, clock.now() - last.at), calls: last.calls, made: last.calls };
  }

  function made(): Plan {
    const month = planMonth(clock.now(), parts.monthStartsOn);
    const lasts = COLLECTORS.flatMap((collector) => {
      const run = runOf(collector);
      return run === null ? [] : [[collector, run] as const];
    });
    const planned = plan({
      ...extentNow(),
      wishes: parts.wishes,
      limits: parts.limits,
      month: { used: parts.office.monthUsed(), leftMs: month.endMs - clock.now() },
      runs: Object.fromEntries(lasts),
      actions: parts.office.actions(),
      others: parts.office.others(),
      reads: parts.reads,
    });
    showPlan(planned, parts.metrics);
    return planned;
  }

  function keep(key: string, value: object): void {
    try {
      facts.write(key, JSON.stringify(value));
      isFailing = false;
    } catch (error) {
      if (!isFailing)
        parts.log.error({ err: error }, "the store refuses writes: a restart plans without what was seen");
      isFailing = true;
    }
  }

  return {
    current: () => current,
    renew() {
      current = made();
      return current;
    },
    begin(collector) {
      const run: Run = { beganAt: clock.monotonic(), made: 0, isOver: false };
      runs.set(collector, run);
      keep(runFact(collector), { at: clock.now(), calls: callsOf(collector, extentNow()) } satisfies KeptRun);
      return {
        ...parts.client,
        get(call, lane, signal, onSending) {
          run.made++;
          return parts.client.get(call, lane, signal, onSending);
        },
      };
    },
    end(collector) {
      const run = runs.get(collector);
      if (run !== undefined) run.isOver = true;
    },
    settle(collector) {
      seen[collector] = true;
      const extent = extentNow();
      const text = JSON.stringify(extent);
      if (facts.read(EXTENT) !== text) keep(EXTENT, extent);
    },
    firstWait(collector) {
      const planned = current[collector];
      const last = kept.get(collector) ?? null;
      if (planned?.boundBy !== "month" || last === null) return 0;
      // A clock that was set back must not wait for the moment it once showed.
      const since = Math.max(0, clock.now() - last.at);
      return Math.max(0, planned.intervalMs * RESTART_SHARE - since);
    },
  };
}

/** Pages of what is not walked whole yet: no fewer than the last process knew of. */
const larger = (now: Extent, before: Extent): Extent => ({
  nodes: Math.max(now.nodes, before.nodes),
  nodePages: Math.max(now.nodePages, before.nodePages),
  sessions: Math.max(now.sessions, before.sessions),
  sessionPages: Math.max(now.sessionPages, before.sessionPages),
});

/** What the process before this one left; a text of another version is none. */
function keptRun({ facts }: PlanningParts, collector: Collector): KeptRun | null {
  const { at, calls } = readFact(facts.read, runFact(collector)) as Partial<KeptRun>;
  return Number.isFinite(at) && Number.isFinite(calls) ? { at: at!, calls: calls! } : null;
}

/** The extent that a process has kept; all of it 0 where the text is none, or another version's. */
export function extentKept(read: (key: string) => string | null): Extent {
  const kept = readFact(read, EXTENT) as Partial<Extent>;
  const count = (value: number | undefined) => (Number.isFinite(value) && value! >= 0 ? value! : 0);
  return {
    nodes: count(kept.nodes),
    nodePages: count(kept.nodePages),
    sessions: count(kept.sessions),
    sessionPages: count(kept.sessionPages),
  };
}

function readFact(read: (key: string) => string | null, key: string): object {
  try {
    const value: unknown = JSON.parse(read(key) ?? "{}");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

function showPlan(planned: Plan, metrics: WardenMetrics): void {
  for (const collector of COLLECTORS) {
    const { intervalMs, stretch, callsPerMinute, boundBy, age } = planned[collector] ?? NOT_COLLECTED;
    metrics.set("proxywarden_plan_interval_seconds", { collector }, intervalMs / SECOND_MS);
    metrics.set("proxywarden_plan_stretch_ratio", { collector }, stretch);
    metrics.set("proxywarden_plan_calls_per_minute", { collector }, callsPerMinute);
    metrics.set("proxywarden_plan_age_seconds", { collector, age: "median" }, age.medianMs / SECOND_MS);
    metrics.set("proxywarden_plan_age_seconds", { collector, age: "worst" }, age.worstMs / SECOND_MS);
    for (const limit of PLAN_BOUNDS) {
      const value = planned[collector] === null ? Number.NaN : Number(boundBy === limit);
      metrics.set("proxywarden_plan_bound", { collector, limit }, value);
    }
  }
}

/** Gauges that are not a number are left out. */
const NOT_COLLECTED = {
  intervalMs: Number.NaN,
  stretch: Number.NaN,
  callsPerMinute: Number.NaN,
  boundBy: null,
  age: { medianMs: Number.NaN, worstMs: Number.NaN },
};
