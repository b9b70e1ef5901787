import { createHash } from "node:crypto";
import type { DurationMs } from "../../../src/base/duration.ts";
import type { ExternalBlockers } from "../../../src/model/ports.ts";
import { Simulation, STEP_MS } from "../daemon/simulation.ts";
import { DISK_FULL, type Violation } from "../daemon/simulation-parts.ts";
import { callForEvent } from "../faults/external-client.ts";
import { createLateActions, type LateActions } from "../faults/late-actions.ts";
import { Operators } from "../faults/operators.ts";
import { startQuietPeriod } from "../faults/quiet-period.ts";
import type { CrashPoint, SuspendPoint, WorldEvent } from "../faults/world-events.ts";
import { createBootCheck } from "../invariants/boot-invariants.ts";
import { LivenessInvariants } from "../invariants/liveness-invariants.ts";
import { metricsViolations } from "../invariants/metrics-invariants.ts";
import type { WorldInput } from "./world-input.ts";

/** The outcome of a run. */
export interface WorldReport {
  readonly violations: readonly Violation[];
  readonly nodes: number;
  readonly posts: number;
  readonly episodes: number;
  /** Number of daemon processes. */
  readonly processes: number;
  readonly calls: number;
  /** Number of recorded decisions with each hold reason. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Number of nodes that were failing at the end, by what the daemon had done about them. */
  readonly failingNodes: Readonly<Record<string, number>>;
  /** A hash of all POSTs and the number of calls. The same input gives the same digest. */
  readonly digest: string;
}

/** A run ends after this many violations. */
const VIOLATIONS_MAX = 20;

/** Stands for every invariant in {@link Until}. */
export const ANY_INVARIANT = "*";

/** When to end a run early. */
export interface Until {
  /** End when this invariant is violated. */
  readonly invariant?: string;
  /** End at this time after the start. */
  readonly ms?: DurationMs;
}

/** Runs an input to its end, or until a condition is met. */
export async function runWorld(input: WorldInput, until: Until = {}): Promise<WorldReport> {
  const world = createWorldRun(input);
  const { simulation, operators } = world;
  const { parts } = simulation;
  const events = [...input.events];
  const isOver = () =>
    parts.violations.length >= VIOLATIONS_MAX ||
    parts.clock.monotonic() >= (until.ms ?? Number.POSITIVE_INFINITY) ||
    parts.violations.some(({ invariant }) => until.invariant === ANY_INVARIANT || invariant === until.invariant);
  for (let at = 0; at < input.quietAtMs && !isOver(); at += STEP_MS) {
    while (events[0] !== undefined && events[0].atMs <= at) await world.apply(events.shift()!.event);
    await simulation.advance(STEP_MS);
    await operators.step();
  }
  world.stopFaults();
  const quiet = startQuietPeriod(simulation, operators);
  const liveness = new LivenessInvariants(parts);
  for (let at = input.quietAtMs; at < input.endMs && !isOver(); at += STEP_MS) {
    quiet.step();
    await simulation.advance(STEP_MS);
    await operators.step();
    liveness.check();
  }
  if (!isOver() && simulation.process() === null) parts.addViolation("daemon down at the end", "no process is running");
  else if (!isOver()) {
    liveness.finish();
    for (const [invariant, detail] of await metricsViolations(parts)) parts.addViolation(invariant, detail);
  }
  await simulation.stop();
  return reportOf(simulation, liveness.failingNodes());
}

/** Returns the report of a simulation. */
export function reportOf(simulation: Simulation, failingNodes: WorldReport["failingNodes"]): WorldReport {
  const { violations, posts, recordedState, service } = simulation.parts;
  const hash = createHash("sha256");
  for (const { at, node, kind, answer } of posts) hash.update(`${at} ${node} ${kind} ${answer}\n`);
  return {
    violations,
    failingNodes,
    nodes: service.network.fleet.allNodes.length,
    posts: posts.length,
    episodes: recordedState.episodes.size,
    processes: simulation.processCount(),
    calls: service.serial,
    reasons: Object.fromEntries(recordedState.reasons),
    digest: hash.update(`${service.serial}`).digest("hex").slice(0, 12),
  };
}

interface WorldRun {
  readonly simulation: Simulation;
  readonly operators: Operators;
  apply(event: WorldEvent): Promise<void>;
  /** Ends all events in progress and cancels a pending kill. */
  stopFaults(): void;
}

function createWorldRun(input: WorldInput): WorldRun {
  const { seed, scenario, configuration, startMs, callsPerMonth, callsUsed, latencyMs } = input;
  const crashTrigger = createTrigger<CrashPoint>((simulation, downMs) => simulation.kill(downMs));
  const suspendTrigger = createTrigger<SuspendPoint>(({ parts: { machine } }, forMs) => machine.suspend(forMs));
  let diskFullUntil = 0;
  let blockedUntil = 0;
  let lateActions: (LateActions & { readonly until: number }) | null = null;
  const isBlocked = () =>
    Promise.resolve({ ok: true, value: simulation.parts.clock.monotonic() < blockedUntil } as const);
  const externalBlockers: ExternalBlockers = { blocks: isBlocked };
  const checkBoots = createBootCheck();
  const simulation = new Simulation({
    seed,
    scenario,
    startMs,
    callsUsed,
    latencyMs,
    externalBlockers,
    ...configuration,
    ...(callsPerMonth === null ? {} : { contract: { plan: { callsPerMonth } } }),
    onMoment(moment, current) {
      crashTrigger.pass(moment, current);
      if (moment === "wake" || moment === "answer") suspendTrigger.pass(moment, current);
    },
    onCommit(when, current, changes) {
      if (when === "after") checkBoots(changes, current.parts);
      crashTrigger.pass(`commit_${when}`, current);
      for (const change of when === "after" ? changes : []) {
        const state = change.kind === "action" && !change.row.dryRun ? change.row.state : null;
        if (state === "intended" || state === "posting" || state === "sent") suspendTrigger.pass(state, current);
      }
    },
    onPost(_post, current) {
      crashTrigger.pass("post", current);
      suspendTrigger.pass("post", current);
    },
    wrapService: (service, parts) =>
      createLateActions(parts, service, () =>
        parts.clock.monotonic() < (lateActions?.until ?? 0) ? lateActions : null,
      ),
    diskProblem: () => (simulation.parts.clock.monotonic() < diskFullUntil ? DISK_FULL : null),
  });
  const { parts } = simulation;
  const operators = new Operators(simulation, seed);
  /** Picks from the current fleet: the simulator forgets nodes that left. */
  const idOf = (index: number) => {
    const { nodes } = parts.service.network.fleet;
    return nodes[index % nodes.length]!.id;
  };
  const until = (forMs: DurationMs) => parts.clock.monotonic() + forMs;

  async function apply(event: WorldEvent): Promise<void> {
    switch (event.kind) {
      case "restart":
        return simulation.restart(event.downMs);
      case "kill":
        return crashTrigger.arm(event.point, event.count, event.downMs);
      case "suspend":
        return suspendTrigger.arm(event.point, event.count, event.forMs);
      case "disk_full":
        diskFullUntil = until(event.forMs);
        return;
      case "clock_step":
        // Nothing sets the clock of a suspended machine. A step back could hide the suspension.
        if (!parts.machine.isSuspended()) parts.clock.stepWallClock(event.byMs);
        return;
      case "reload":
        return simulation.reload(event.configuration);
      case "quarantine":
        return operators.quarantine(idOf(event.node), event.forMs);
      case "lift_quarantine":
        return operators.liftQuarantine();
      case "hold":
        return operators.hold(idOf(event.node), event.forMs);
      case "pause":
        return operators.pause(event.forMs);
      case "blocked":
        blockedUntil = until(event.forMs);
        return;
      case "late_actions":
        lateActions = { ...event, until: until(event.forMs) };
        return;
      case "accept_inventory":
        return operators.acceptInventory();
      case "other_user":
        return callForEvent(event, parts);
      default:
        return event satisfies never;
    }
  }

  return {
    simulation,
    operators,
    apply,
    stopFaults() {
      crashTrigger.disarm();
      suspendTrigger.disarm();
      parts.machine.resume();
      // Correct the machine's clock.
      parts.clock.stepWallClock(startMs + parts.clock.monotonic() - parts.clock.now());
      [diskFullUntil, blockedUntil, lateActions] = [0, 0, null];
    },
  };
}

/** Creates a trigger that runs `effect` at the n-th moment of a kind. */
function createTrigger<Point extends string>(effect: (simulation: Simulation, ms: DurationMs) => void) {
  let armed: { readonly point: Point; readonly ms: DurationMs } | null = null;
  let left = 0;
  return {
    arm(point: Point, count: number, ms: DurationMs): void {
      armed = { point, ms };
      left = count;
    },
    disarm(): void {
      armed = null;
    },
    pass(point: Point, simulation: Simulation): void {
      if (armed?.point !== point) return;
      left--;
      if (left > 0) return;
      const { ms } = armed;
      armed = null;
      effect(simulation, ms);
    },
  };
}
