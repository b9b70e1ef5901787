import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { isLost } from "../../../src/policy/facts.ts";
import type { Simulation } from "../daemon/simulation.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** Simulated operators: they send commands to the daemon, revoke them, and answer approval requests. */
export interface Operators {
  /** Quarantines a node through the service's API, without the daemon. */
  quarantine(node: string, forMs: DurationMs): void;
  /** Lifts one of the daemon's quarantines through the service's API. */
  liftQuarantine(): void;
  hold(node: string, forMs: DurationMs): void;
  pause(forMs: DurationMs): void;
  acceptInventory(): void;
  /** Does what is due. Call at every step. */
  step(): void;
  /** From now on, approves every request at once and revokes all pauses and holds. */
  setDiligent(): void;
}

/** How long a problem lasts before an operator reacts to it. */
const BREAKER_MS: DurationMs = 2 * HOUR_MS;
const BREAKER_MS_DILIGENT: DurationMs = 20 * MINUTE_MS;
const INVENTORY_MS: DurationMs = 30 * MINUTE_MS;
const LOST_NODES_MS: DurationMs = 4 * HOUR_MS;
/** Time after a start by which the daemon knows how long it was down. */
const CLOCK_SETTLED_MS: DurationMs = 70 * MINUTE_MS;
/** Shares of the pending requests that are approved or rejected at each step. */
const APPROVED_SHARE = 0.006;
const REJECTED_SHARE = 0.0006;
/** Faults that list a wrong inventory: an operator does not accept it. */
const WRONG_INVENTORY_FAULTS: ReadonlySet<string> = new Set(["vanished", "empty_list", "bad_records", "page_ignored"]);

/** Creates the operators of a run. The seed determines their random decisions. */
export function createOperators(simulation: Simulation, seed: number): Operators {
  const random = seededRandom(seed + 17);
  const { parts } = simulation;
  let isDiligent = false;
  /** Commands to revoke at a time, or later if the daemon is down then. `run` returns whether the daemon accepted. */
  let scheduledEnds: { readonly at: number; run(): boolean }[] = [];
  /** Start of each current problem, by name. */
  const since = new Map<string, number>();
  /** When each approval request was first observed. */
  const requestedAt = new Map<string, number>();
  const commands = () => simulation.process()?.remediation.operatorCommands;

  const runLater = (ms: DurationMs, run: () => boolean): void => {
    scheduledEnds.push({ at: parts.clock.monotonic() + ms, run });
  };

  /** Whether a problem has lasted for `ms`. */
  function hasLasted(problem: string, isPresent: boolean, ms: DurationMs): boolean {
    const now = parts.clock.monotonic();
    if (!isPresent) since.delete(problem);
    else if (!since.has(problem)) since.set(problem, now);
    return isPresent && now - since.get(problem)! >= ms;
  }

  function answerApprovals(): void {
    const approvals = simulation.process()?.remediation.view.approvals() ?? [];
    for (const { id } of approvals) {
      checkNotExpired(id);
      const draw = isDiligent ? 0 : random();
      if (draw < APPROVED_SHARE && commands()?.approve(id).ok) parts.approvals.set(id, parts.clock.monotonic());
      else if (draw >= APPROVED_SHARE && draw < APPROVED_SHARE + REJECTED_SHARE) commands()?.reject(id, "not now");
    }
  }

  /** A request must disappear when it expires. */
  function checkNotExpired(id: string): void {
    const now = parts.clock.monotonic();
    if (!requestedAt.has(id)) requestedAt.set(id, now);
    const waitedMs = now - requestedAt.get(id)!;
    const isExpired = waitedMs > parts.rules.safety.approvalTtlMs + MINUTE_MS;
    // After a start the daemon may take an hour to learn how long it was down.
    if (isExpired && now - parts.processStartedAt > CLOCK_SETTLED_MS)
      parts.addViolation("approval expired", `${id} is still pending after ${waitedMs / MINUTE_MS} min`);
  }

  function handleAlerts(): void {
    const view = simulation.process()?.remediation.view;
    if (view === undefined) return;
    const status = view.status();
    const isAnyFallenBack = view.policies().some(({ hasFallenBack }) => hasFallenBack);
    const isOpen = status.breaker !== null || (isDiligent && isAnyFallenBack);
    if (hasLasted("breaker", isOpen, isDiligent ? BREAKER_MS_DILIGENT : BREAKER_MS) && commands()?.resetBreaker().ok) {
      parts.breakerModel.reset();
      since.delete("breaker");
    }
    const isShrunk = status.trust.some(
      ({ reason }) => reason === "inventory_shrunk" || reason === "inventory_incomplete",
    );
    const hasLostNodes = [...parts.recordedState.open].some((id) => isLost(parts.recordedState.episodes.get(id)!));
    if (
      hasLasted("inventory", isShrunk, INVENTORY_MS) ||
      hasLasted("lost nodes", hasLostNodes, isDiligent ? INVENTORY_MS : LOST_NODES_MS)
    ) {
      acceptInventory();
    }
  }

  function acceptInventory(): void {
    const { world } = parts.service;
    const now = world.now - world.startMs;
    const isWrong = world.faultSchedule.faults.some(
      ({ afterMs, forMs, fault }) =>
        WRONG_INVENTORY_FAULTS.has(fault.kind) && now >= afterMs && now < afterMs + forMs + HOUR_MS,
    );
    if (isWrong || commands()?.acceptInventory().ok !== true) return;
    parts.acceptedAt = parts.clock.monotonic();
    parts.acceptedNodes = parts.process?.snapshot()?.fleet.lastWalk?.seenNodes ?? Number.POSITIVE_INFINITY;
    since.delete("inventory");
    since.delete("lost nodes");
  }

  return {
    quarantine(node, forMs) {
      const until = parts.serviceNow() + forMs;
      if (!parts.service.world.fleet.nodes.some(({ id }) => id === node)) return;
      simulation.interventions.quarantine(node, until);
      parts.withOperator.set(node, until);
    },
    liftQuarantine() {
      const ours = quarantinedByUs(parts);
      const node = ours[Math.floor(random() * ours.length)];
      if (node !== undefined) simulation.interventions.liftQuarantine(node);
    },
    hold(node, forMs) {
      if (commands()?.hold(node, "not now").ok) runLater(forMs, () => commands()?.release(node).ok ?? false);
    },
    pause(forMs) {
      if (commands()?.pause("not now").ok) runLater(forMs, () => commands()?.resume().ok ?? false);
    },
    acceptInventory,
    step() {
      const now = parts.clock.monotonic();
      scheduledEnds = scheduledEnds.filter(({ at, run }) => (at > now && !isDiligent) || !run());
      answerApprovals();
      handleAlerts();
    },
    setDiligent() {
      isDiligent = true;
    },
  };
}

/** Returns the nodes that the daemon has quarantined, by its journal. */
function quarantinedByUs({ recordedState, service }: SimulationParts): string[] {
  const present = new Set(service.world.fleet.nodes.map(({ id }) => id));
  const open = [...recordedState.open].map((id) => recordedState.episodes.get(id)!);
  return open.flatMap(({ quarantine, node }) => (quarantine === null || !present.has(node) ? [] : [node]));
}
