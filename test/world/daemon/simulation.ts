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
import { firingViolation } from "../invariants/firing-invariant.ts";
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

/** Options of a simulation. */
export interface SimulationOptions extends Configuration {
  readonly seed: number;
  readonly scenario: Scenario;
  /** Limits of the service that differ from those of its plan. */
  readonly contract?: CustomLimits;
  /** Start of the simulation. Default: the start of a month. */
  readonly startMs?: EpochMs;
  readonly externalBlockers?: ExternalBlockers;
  /** Called at each moment at which the daemon may be killed, other than commits and POSTs. */
  readonly onMoment?: (moment: ProcessMoment, simulation: Simulation) => void;
  /** Returns why the disk rejects writes now; null: it accepts them. */
  readonly diskProblem?: () => string | null;
  /** Called before and after each commit. May kill the daemon, or throw as a store does. */
  readonly onCommit?: (when: "before" | "after", simulation: Simulation, changes: readonly JournalChange[]) => void;
  /** Called when a POST is sent. May kill the daemon. */
  readonly onPost?: (post: PostAttempt, simulation: Simulation) => void;
  readonly onFirings?: (
    firings: readonly { readonly policy: string; readonly node: string }[],
    simulation: Simulation,
  ) => void;
}

/** A simulated service and the daemon's processes, one after the other. Every request between them is checked. */
export interface Simulation {
  readonly parts: SimulationParts;
  readonly store: StateStore;
  readonly interventions: Interventions;
  /** Number of log messages at warn and error, by level and message. */
  readonly logLines: ReadonlyMap<string, number>;
  /** Advances the clock. Starts a killed daemon again after its downtime. */
  advance(ms: DurationMs): Promise<void>;
  /** The running process; null: the daemon is down. */
  process(): DaemonProcess | null;
  /** Number of processes started so far. */
  processCount(): number;
  /** Kills the process; the next one starts after `downMs`. */
  kill(downMs: DurationMs): void;
  /** Activates another configuration: now if the daemon runs, otherwise at its next start. */
  reload(configuration: Configuration): void;
  /** Stops the process gracefully; the next one starts after `downMs`. */
  restart(downMs: DurationMs): Promise<void>;
  stop(): Promise<void>;
}

/** The clock advances in steps of this length. A daemon that is due to start does so between two steps. */
export const STEP_MS: DurationMs = 10 * SECOND_MS;
/** The longest time that a graceful stop may take. */
const STOP_MS: DurationMs = MINUTE_MS;

/** Starts a simulation with a new daemon. */
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
        const violation = firingViolation(policy, node, parts);
        if (violation !== null) parts.addViolation("firing on a healthy node", violation);
      }
      breakerModel.recordFirings(firings, clock.monotonic() + parts.forwardMs);
      options.onFirings?.(firings, simulation);
    },
    violation: (invariant, detail) => parts.addViolation(invariant, detail),
  });
  const parts: SimulationParts = {
    ...{ service, clock, recordedState, breakerModel, startMs, rules: options.rules },
    ...{ posts: [], postsOfStep: new Map(), disruptedByUs: new Map(), withOperator: new Map(), violations: [] },
    ...{ observations: createObservations(), lastFailingAt: new Map(), approvals: new Map() },
    acceptedAt: Number.NEGATIVE_INFINITY,
    acceptedNodes: Number.POSITIVE_INFINITY,
    callCount: { counted: 0, pending: 0, lost: 0 },
    externalUsers: { calls: 0, calledAt: Number.NEGATIVE_INFINITY },
    process: null,
    forwardMs: 0,
    processStartedAt: 0,
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
        const { callCount } = parts;
        callCount.pending = calls;
        assertDisk();
        store.calls.add(day, calls);
        callCount.pending = 0;
        callCount.counted += calls;
      },
    },
  };

  function onSnapshot({ fleet }: Snapshot): void {
    if (fleet.lastWalk === null || fleet.lastWalk.at === walkAt) return;
    walkAt = fleet.lastWalk.at;
    if (fleet.lastWalk.complete) parts.acceptedNodes = Math.max(parts.acceptedNodes, fleet.lastWalk.seenNodes);
    const droppedTooEarly = parts.observations.endWalk(new Set(fleet.ids.filter((id) => id !== "")));
    for (const node of droppedTooEarly)
      parts.addViolation("node dropped too early", `${node} was dropped after one walk without it`);
  }

  function start(): void {
    processCount++;
    startsAt = Number.POSITIVE_INFINITY;
    lifetime = createProcessLifetime();
    walkAt = null;
    parts.observations.startProcess();
    recordedState.startProcess();
    parts.processStartedAt = clock.monotonic();
    parts.forwardMs = Math.max(parts.forwardMs, clock.now() - clock.monotonic() - startMs);
    parts.process = startDaemonProcess({
      ...{ clock, transport, store: disk, journal: recordedState.journal, log, lifetime, ...configuration },
      externalBlockers: options.externalBlockers ?? noExternalBlockers,
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

  /** Calls that the disk did not count are lost with the process. */
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
    // A process that is killed while it stops never completes the stop.
    if (isStopped || !lifetime.isAlive()) {
      losePending();
      return;
    }
    parts.addViolation("slow stop", `the daemon did not stop within ${STOP_MS / SECOND_MS} s`);
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
        recordFailingNodes(parts);
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

function recordFailingNodes({ service: { world }, lastFailingAt }: SimulationParts): void {
  for (const { id, failureMode, isRegionDown } of world.fleet.nodes)
    if (failureMode !== "none" || isRegionDown) lastFailingAt.set(id, world.now);
}

/** Counts messages at warn and error. A failed remediation round is a violation. */
function createCountingLog(logLines: Map<string, number>, parts: SimulationParts): Log {
  const count = (level: string, message: string) => {
    const line = `${level}: ${message}`;
    logLines.set(line, (logLines.get(line) ?? 0) + 1);
    if (message.startsWith("remediation round failed")) parts.addViolation("remediation round failed", message);
  };
  return {
    debug: () => {},
    info: () => {},
    warn: (_fields, message) => count("warn", message),
    error: (fields, message) => count("error", `${message}${fields.err === undefined ? "" : ` ${fields.err}`}`),
  };
}
