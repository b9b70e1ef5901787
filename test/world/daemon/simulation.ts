import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite.ts";
import type { ExternalBlockers, Log, StateStore } from "../../../src/model/ports.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import type { Scenario } from "../../../src/model/scenario.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import type { EpochMs } from "../../../src/model/time.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import type { CustomLimits } from "../../../src/simulator/http/rate-limits.ts";
import { createService } from "../../../src/simulator/http/service.ts";
import { createSimulatedTransport } from "../../../src/simulator/http/transport.ts";
import { createInterventions, type Interventions } from "../../../src/simulator/intervention.ts";
import { noExternalBlockers, START_MS } from "../../harness/virtual-daemon.ts";
import { createBreakerModel } from "../invariants/breaker-model.ts";
import { firingLaw } from "../invariants/firing-invariant.ts";
import { createCheckedTransport } from "./checked-transport.ts";
import {
  type Configuration,
  createProcessLifetime,
  type DaemonProcess,
  type ProcessMoment,
  startDaemonProcess,
} from "./daemon-process.ts";
import { createObservations } from "./observations.ts";
import { createRecordedState } from "./recording-store.ts";
import { type PostAttempt, type SimulationParts, serviceTimeOf } from "./simulation-parts.ts";

/** What a play is about. */
export interface SimulationOptions extends Configuration {
  readonly seed: number;
  readonly scenario: Scenario;
  /** The limits of the service where they differ from its plan's. */
  readonly contract?: CustomLimits;
  /** When it begins; absent: at the beginning of a month. */
  readonly startMs?: EpochMs;
  readonly obstacles?: ExternalBlockers;
  /** Told of each moment at which the daemon may be killed, beside commits and POSTs. */
  readonly onMoment?: (moment: ProcessMoment, simulation: Simulation) => void;
  /** Why the disk refuses writes now; null: it takes them. */
  readonly diskProblem?: () => string | null;
  /** Told of each commit, before and after it reached the store. It may kill the daemon, or throw as a store does. */
  readonly onCommit?: (when: "before" | "after", simulation: Simulation, changes: readonly JournalChange[]) => void;
  /** Told of each POST as it goes out. It may kill the daemon. */
  readonly onPost?: (post: PostAttempt, simulation: Simulation) => void;
  readonly onFirings?: (
    firings: readonly { readonly policy: string; readonly node: string }[],
    simulation: Simulation,
  ) => void;
}

/** A network, the daemon's lives one after the other, and the witness between them. */
export interface Simulation {
  readonly parts: SimulationParts;
  readonly store: StateStore;
  readonly interventions: Interventions;
  /** Messages of the log at warn and error, counted. */
  readonly logLines: ReadonlyMap<string, number>;
  /** Passes time; a daemon that is dead is started again after `downMs`. */
  advance(ms: DurationMs): Promise<void>;
  /** The life that lasts; null: the daemon is down. */
  process(): DaemonProcess | null;
  /** Lives so far. */
  processCount(): number;
  kill(downMs: DurationMs): void;
  /** Puts another configuration in force: at once if the daemon runs, else with its next start. */
  reload(configuration: Configuration): void;
  /** Stops it in order, and starts it after a while. */
  restart(downMs: DurationMs): Promise<void>;
  stop(): Promise<void>;
}

/** Time passes in steps of this: a daemon that died in one is looked after at its end. */
export const STEP_MS: DurationMs = 10 * SECOND_MS;
/** What a stop takes at most. */
const STOP_MS: DurationMs = MINUTE_MS;

/** Begins a play: nothing has happened, and the daemon was just started. */
export function startSimulation(options: SimulationOptions): Simulation {
  const { seed, scenario, startMs = START_MS } = options;
  const clock = createVirtualClock(startMs);
  const service = createService(scenario, startMs, options.contract);
  const store = createMemoryStateStore();
  const logLines = new Map<string, number>();
  let configuration: Configuration = options;
  let walkAt: number | null = null;
  let processCount = 0;
  let lifetime = createProcessLifetime();
  let startsAt = Number.POSITIVE_INFINITY;

  const breakerModel = createBreakerModel({
    rules: () => parts.rules,
    nodes: () => Math.max(service.world.fleet.nodes.length, parts.process?.snapshot()?.fleet.count ?? 0),
    hasFallenBack: (policy) => (recordedState.facts.get(`warden.fallen.${policy}`) ?? null) !== null,
  });
  const recordedState = createRecordedState(store, {
    before: (changes) => hook("before", changes),
    after: (changes) => hook("after", changes),
    onFirings(firings) {
      for (const { policy, node } of firings) {
        const broken = firingLaw(policy, node, parts);
        if (broken !== null) parts.addViolation("a healthy node fires", broken);
      }
      breakerModel.recordFirings(firings, clock.monotonic() + parts.forwardMs);
      options.onFirings?.(firings, simulation);
    },
    violation: (invariant, detail) => parts.addViolation(invariant, detail),
  });
  const parts: SimulationParts = {
    ...{ service, clock, recordedState, breakerModel, startMs, rules: options.rules },
    ...{ posts: [], postsOfStep: new Map(), disruptedByUs: new Map(), withOperator: new Map(), violations: [] },
    ...{
      observations: createObservations(),
      wasIllAt: new Map(),
      approvals: new Map(),
      acceptedAt: Number.NEGATIVE_INFINITY,
      acceptedNodes: Number.POSITIVE_INFINITY,
    },
    callCount: { counted: 0, pending: 0, lost: 0 },
    externalUsers: { calls: 0, calledAt: Number.NEGATIVE_INFINITY },
    process: null,
    forwardMs: 0,
    bornAt: 0,
    serviceNow: serviceTimeOf(service, clock),
    addViolation(invariant, detail) {
      parts.violations.push({ invariant, at: clock.monotonic(), detail });
    },
  };
  const network = createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 });
  const transport = createCheckedTransport(parts, network, (post) => options.onPost?.(post, simulation));
  const log = createCountingLog(logLines, parts);

  function hook(when: "before" | "after", changes: readonly JournalChange[]): void {
    if (when === "before") assertDisk();
    options.onCommit?.(when, simulation, changes);
    if (!lifetime.isAlive()) throw new Error("killed");
  }

  function assertDisk(): void {
    const problem = options.diskProblem?.() ?? null;
    if (problem !== null) throw new Error(problem);
  }

  const disk: StateStore = {
    ...store,
    facts: {
      read: store.facts.read,
      write(key, value) {
        assertDisk();
        store.facts.write(key, value);
      },
    },
    calls: {
      since: store.calls.since,
      add(day, calls) {
        const { callCount: ledger } = parts;
        ledger.pending = calls;
        assertDisk();
        store.calls.add(day, calls);
        ledger.pending = 0;
        ledger.counted += calls;
      },
    },
  };

  function onSnapshot({ fleet }: Snapshot): void {
    if (fleet.lastWalk === null || fleet.lastWalk.at === walkAt) return;
    walkAt = fleet.lastWalk.at;
    if (fleet.lastWalk.complete) parts.acceptedNodes = Math.max(parts.acceptedNodes, fleet.lastWalk.seenNodes);
    const tooSoon = parts.observations.endWalk(new Set(fleet.ids.filter((id) => id !== "")));
    for (const node of tooSoon)
      parts.addViolation("forgotten too soon", `${node} is forgotten after one walk without it`);
  }

  function start(): void {
    processCount++;
    startsAt = Number.POSITIVE_INFINITY;
    lifetime = createProcessLifetime();
    walkAt = null;
    parts.observations.startWalk();
    recordedState.startProcess();
    parts.bornAt = clock.monotonic();
    parts.forwardMs = Math.max(parts.forwardMs, clock.now() - clock.monotonic() - startMs);
    parts.process = startDaemonProcess({
      ...{ clock, transport, store: disk, journal: recordedState.journal, log, lifetime, ...configuration },
      obstacles: options.obstacles ?? noExternalBlockers,
      seed: seed * 1_000 + processCount,
      onMoment: (moment) => options.onMoment?.(moment, simulation),
      onSnapshot,
      onConfiguration({ rules }) {
        parts.rules = rules;
      },
    });
  }

  function kill(downMs: DurationMs): void {
    if (!lifetime.isAlive()) return;
    lifetime.kill();
    losePending();
    startsAt = clock.monotonic() + downMs;
  }

  /** What the disk refused to count ends with the process. */
  function losePending(): void {
    parts.callCount.lost += parts.callCount.pending;
    parts.callCount.pending = 0;
  }

  async function stop(): Promise<void> {
    if (parts.process?.isAlive() !== true) return;
    let isStopped = false;
    void parts.process.stop().then(() => {
      isStopped = true;
    });
    await clock.advance(STOP_MS);
    // It may have been killed while it stopped, and then never ends.
    if (isStopped || !lifetime.isAlive()) {
      losePending();
      return;
    }
    parts.addViolation("stops in time", `it did not stop within ${STOP_MS / SECOND_MS} s`);
    lifetime.kill();
  }

  const simulation: Simulation = {
    ...{ parts, store, logLines, kill },
    interventions: createInterventions(service, parts.serviceNow),
    reload(next) {
      configuration = next;
      if (parts.process?.isAlive() === true) void parts.process.reload(next);
    },
    process: () => (parts.process?.isAlive() === true ? parts.process : null),
    processCount: () => processCount,
    async advance(ms) {
      const until = clock.monotonic() + ms;
      while (clock.monotonic() < until) {
        if (clock.monotonic() >= startsAt) start();
        await clock.advance(Math.min(STEP_MS, until - clock.monotonic()));
        noteIll(parts);
      }
    },
    async restart(downMs) {
      await stop();
      if (!lifetime.isAlive()) startsAt = Math.min(startsAt, clock.monotonic() + downMs);
    },
    async stop() {
      startsAt = Number.POSITIVE_INFINITY;
      await stop();
    },
  };
  start();
  return simulation;
}

/** Remembers which nodes are ill now. */
function noteIll({ service: { world }, wasIllAt }: SimulationParts): void {
  for (const { id, failureMode: ailment, isRegionDown: dark } of world.fleet.nodes)
    if (ailment !== "none" || dark) wasIllAt.set(id, world.now);
}

/** Counts what is logged at warn and error. A round that broke is a defect. */
function createCountingLog(logLines: Map<string, number>, parts: SimulationParts): Log {
  const count = (level: string, message: string) => {
    const line = `${level}: ${message}`;
    logLines.set(line, (logLines.get(line) ?? 0) + 1);
    if (message.startsWith("remediation round failed")) parts.addViolation("no round breaks", message);
  };
  return {
    debug: () => {},
    info: () => {},
    warn: (_fields, message) => count("warn", message),
    error: (fields, message) => count("error", `${message}${fields.err === undefined ? "" : ` ${fields.err}`}`),
  };
}
