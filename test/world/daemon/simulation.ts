import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Scenario } from "../../../src/config/schema/scenario.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import type { ExternalBlockers, Log, StateStore, Transport } from "../../../src/model/ports.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../../src/model/time.ts";
import { billingMonthOf, utcDay } from "../../../src/rate-limit/monthly-budget.ts";
import { createVirtualClock, type VirtualClock } from "../../../src/simulator/clock.ts";
import type { CustomLimits } from "../../../src/simulator/http/rate-limits.ts";
import { createService, type SimulatedService } from "../../../src/simulator/http/service.ts";
import { noExternalBlockers, START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { createInterventions, type Interventions } from "../../harness/simulator/interventions.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";
import { createBreakerModel } from "../invariants/breaker-model.ts";
import { checkCommit } from "../invariants/commit-invariants.ts";
import { firingViolation } from "../invariants/firing-invariant.ts";
import { checkServiceClock, checkWalk, createServiceClockModel } from "../invariants/observation-invariants.ts";
import { createRegionOutages } from "../invariants/outages/region-outages.ts";
import { createCheckedTransport } from "./checked-transport.ts";
import {
  type Configuration,
  createProcessLifetime,
  type DaemonProcess,
  type ProcessMoment,
  startDaemonProcess,
} from "./daemon-process.ts";
import { createMachine } from "./machine.ts";
import { createObservations } from "./observations.ts";
import { type CommitHooks, RecordedState } from "./recording-store.ts";
import {
  createLog,
  type PostAttempt,
  recordFailingNodes,
  type SimulationParts,
  serviceTimeOf,
  type Violation,
} from "./simulation-parts.ts";

/** Options of a simulation. */
export interface SimulationOptions extends Configuration {
  readonly seed: number;
  readonly scenario: Scenario;
  /** Limits of the service that differ from those of its plan. */
  readonly contract?: CustomLimits;
  /** Start of the simulation. Defaults to the start of a month. */
  readonly startMs?: EpochMs;
  /** Calls of the month that were used before. Defaults to none. */
  readonly callsUsed?: number;
  /** Mean time from a request to its response. Defaults to 50 ms. */
  readonly latencyMs?: DurationMs;
  readonly externalBlockers?: ExternalBlockers;
  readonly wrapService?: (service: Transport, parts: SimulationParts) => Transport;
  /** Called at each moment at which the daemon may be killed, other than commits and POSTs. */
  readonly onMoment?: (moment: ProcessMoment, simulation: Simulation) => void;
  /** Returns why the disk now rejects writes and reads of facts, or null if it accepts them. */
  readonly diskProblem?: () => string | null;
  /** Resolves when the daemon learns of a commit that was written. Defaults to immediately. */
  readonly finishCommit?: () => Promise<void>;
  /** Called before and after each commit. May kill the daemon, or throw as a store does. */
  readonly onCommit?: (when: "before" | "after", simulation: Simulation, changes: readonly JournalChange[]) => void;
  /** Called when a POST is sent. May kill the daemon. */
  readonly onPost?: (post: PostAttempt, simulation: Simulation) => void;
  readonly onFirings?: (firings: Parameters<CommitHooks["onFirings"]>[0], simulation: Simulation) => void;
}

/** The clock advances in steps of this length. A daemon that is due to start does so between two steps. */
export const STEP_MS: DurationMs = 10 * SECOND_MS;
/** The longest time that a graceful stop may take. */
const STOP_MS: DurationMs = MINUTE_MS;

/** A simulated service and the daemon's processes, one after the other. Every request between them is checked. */
export class Simulation {
  readonly parts: SimulationParts;
  readonly interventions: Interventions;
  readonly #options: SimulationOptions;
  readonly #clock: VirtualClock;
  readonly #disk: StateStore;
  readonly #transport: Transport;
  readonly #log: Log;
  #configuration: Configuration;
  #lifetime = createProcessLifetime();
  #processCount = 0;
  /** When the next process starts. The first one starts with the first advance. */
  #startsAt = 0;
  /** Time of the last walk that was checked. */
  #walkAt: MonotonicMs | null = null;

  /** Creates a simulation of a new daemon. */
  constructor(options: SimulationOptions) {
    const { scenario, startMs = START_MS, callsUsed = 0, latencyMs = 50 } = options;
    const service = createService(scenario, startMs, options.contract);
    const store = createMemoryStateStore();
    Object.assign(service.apiLimits, { monthStart: billingMonthOf(startMs, 1).startMs, monthCalls: callsUsed });
    void store.calls.add(utcDay(startMs), callsUsed);
    this.#options = options;
    this.#configuration = options;
    this.#clock = createVirtualClock(startMs);
    this.parts = this.#createParts(service, this.#recordCommits(store), startMs);
    this.interventions = createInterventions(service, this.parts.serviceNow);
    this.#disk = this.#createDisk(store);
    this.#log = createLog(this.parts);
    const network = createSimulatedTransport(service, this.#clock, { latencyMs, jitter: 0.5 });
    const wrapped = options.wrapService?.(network, this.parts) ?? network;
    this.#transport = createCheckedTransport(this.parts, wrapped, (post) => options.onPost?.(post, this));
  }

  /** Returns the running process, or null if the daemon is down or its machine is suspended. */
  process(): DaemonProcess | null {
    return this.parts.process?.isAlive() === true && !this.parts.machine.isSuspended() ? this.parts.process : null;
  }

  /** Number of processes started so far. */
  processCount(): number {
    return this.#processCount;
  }

  /** Advances the clock. Starts a killed daemon again after its downtime. */
  async advance(ms: DurationMs): Promise<void> {
    const until = this.#clock.monotonic() + ms;
    while (this.#clock.monotonic() < until) {
      if (this.#clock.monotonic() >= this.#startsAt && !this.parts.machine.isSuspended()) await this.#start();
      await this.#clock.advance(Math.min(STEP_MS, until - this.#clock.monotonic()));
      recordFailingNodes(this.parts);
      checkServiceClock(this.parts);
      this.parts.regionOutages.update();
    }
  }

  /** Kills the process; the next one starts after `downMs`. */
  kill(downMs: DurationMs): void {
    if (!this.#lifetime.isAlive()) return;
    this.#lifetime.kill();
    this.#losePendingCalls();
    this.#startsAt = this.#clock.monotonic() + downMs;
  }

  /** Activates another configuration: now if the daemon runs, otherwise at its next start. */
  reload(configuration: Configuration): void {
    this.#configuration = configuration;
    this.parts.machine.resume();
    void this.process()?.reload(configuration);
  }

  /** Stops the process gracefully; the next one starts after `downMs`. */
  async restart(downMs: DurationMs): Promise<void> {
    await this.#stopProcess();
    if (!this.#lifetime.isAlive()) this.#startsAt = Math.min(this.#startsAt, this.#clock.monotonic() + downMs);
  }

  /** Stops the process gracefully. */
  async stop(): Promise<void> {
    this.#startsAt = Number.POSITIVE_INFINITY;
    await this.#stopProcess();
  }

  #createParts(service: SimulatedService, recordedState: RecordedState, startMs: EpochMs): SimulationParts {
    const clock = this.#clock;
    const violations: Violation[] = [];
    return {
      service,
      clock,
      machine: createMachine(clock),
      recordedState,
      startMs,
      violations,
      config: this.#options.config,
      posts: [],
      postsOfStep: new Map(),
      disruptedByUs: new Map(),
      withOperator: new Map(),
      observations: createObservations(),
      lastFailingAt: new Map(),
      approvals: new Map(),
      breakerModel: createBreakerModel({
        config: () => this.parts.config,
        nodes: () => Math.max(service.network.fleet.nodes.length, this.parts.process?.snapshot()?.fleet.count ?? 0),
        hasFallenBack: (policy) => (recordedState.facts.get(`remediation.fallback.${policy}`) ?? null) !== null,
      }),
      serviceClock: createServiceClockModel(),
      regionOutages: createRegionOutages(() => this.parts),
      hasKnownFleet: false,
      acceptedAt: Number.NEGATIVE_INFINITY,
      acceptedNodes: Number.POSITIVE_INFINITY,
      confirmedNodes: 0,
      lastWalkNodes: 0,
      callCount: { counted: 0, pending: 0, lost: 0 },
      externalUsers: { calls: 0, calledAt: Number.NEGATIVE_INFINITY },
      process: null,
      forwardMs: 0,
      processStartedAt: 0,
      serviceNow: serviceTimeOf(service, clock),
      addViolation: (invariant, detail) => void violations.push({ invariant, at: clock.monotonic(), detail }),
    };
  }

  #recordCommits(store: StateStore): RecordedState {
    return new RecordedState(store, {
      before: (changes) => {
        this.#checkDisk();
        this.#onCommit("before", changes);
      },
      after: (changes) => this.#onCommit("after", changes),
      finish: () => this.#options.finishCommit?.() ?? Promise.resolve(),
      onFirings: (firings) => {
        for (const { policy, node } of firings) {
          const violation = firingViolation(policy, node, this.parts);
          if (violation !== null) this.parts.addViolation("firing on a healthy node", violation);
        }
        this.parts.breakerModel.recordFirings(firings, this.#clock.monotonic() + this.parts.forwardMs);
        this.#options.onFirings?.(firings, this);
      },
      violation: (invariant, detail) => this.parts.addViolation(invariant, detail),
    });
  }

  #onCommit(when: "before" | "after", changes: readonly JournalChange[]): void {
    if (when === "after") checkCommit(changes, this.parts);
    this.#options.onCommit?.(when, this, changes);
    if (!this.#lifetime.isAlive()) throw new Error("killed");
  }

  /** Returns a store that rejects writes while the disk fails, and counts the API calls it stores. */
  #createDisk(store: StateStore): StateStore {
    const { callCount } = this.parts;
    return {
      ...store,
      calls: {
        since: store.calls.since,
        add: async (day, calls) => {
          callCount.pending = calls;
          this.#checkDisk();
          await store.calls.add(day, calls);
          callCount.pending = 0;
          callCount.counted += calls;
        },
      },
    };
  }

  #checkDisk(): void {
    const problem = this.#options.diskProblem?.() ?? null;
    if (problem !== null) throw new Error(problem);
  }

  async #start(): Promise<void> {
    const { parts } = this;
    const clock = this.#clock;
    this.#processCount++;
    this.#startsAt = Number.POSITIVE_INFINITY;
    this.#lifetime = createProcessLifetime();
    this.#walkAt = null;
    const { observations, serviceClock, regionOutages, recordedState } = parts;
    for (const part of [observations, serviceClock, regionOutages, recordedState]) part.startProcess();
    [parts.hasKnownFleet, parts.processStartedAt] = [false, clock.monotonic()];
    parts.forwardMs = Math.max(parts.forwardMs, clock.now() - clock.monotonic() - parts.startMs);
    parts.process = await startDaemonProcess({
      clock,
      machine: parts.machine,
      transport: this.#transport,
      store: this.#disk,
      journal: parts.recordedState.journal,
      log: this.#log,
      lifetime: this.#lifetime,
      ...this.#configuration,
      externalBlockers: this.#options.externalBlockers ?? noExternalBlockers,
      seed: this.#options.seed * 1_000 + this.#processCount,
      onMoment: (moment) => this.#options.onMoment?.(moment, this),
      onSnapshot: (snapshot) => this.#checkWalk(snapshot),
      onConfiguration: ({ config }) => {
        parts.config = config;
      },
    });
  }

  #checkWalk({ fleet }: Snapshot): void {
    if (fleet.lastWalk !== null && fleet.lastWalk.at !== this.#walkAt) checkWalk(fleet, this.parts);
    this.#walkAt = fleet.lastWalk?.at ?? null;
  }

  async #stopProcess(): Promise<void> {
    this.parts.machine.resume();
    if (this.parts.process?.isAlive() !== true) return;
    let isStopped = false;
    void this.parts.process.stop().then(() => {
      isStopped = true;
    });
    await this.#clock.advance(STOP_MS);
    // A process that is killed while it stops never completes the stop.
    if (isStopped || !this.#lifetime.isAlive()) return this.#losePendingCalls();
    this.parts.addViolation("slow stop", `the daemon did not stop within ${STOP_MS / SECOND_MS} s`);
    this.#lifetime.kill();
  }

  /** Calls that were not yet counted on the disk are lost with the process. */
  #losePendingCalls(): void {
    this.parts.callCount.lost += this.parts.callCount.pending;
    this.parts.callCount.pending = 0;
  }
}
