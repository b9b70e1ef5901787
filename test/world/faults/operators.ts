import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { isLost } from "../../../src/policy/facts.ts";
import type { Simulation } from "../daemon/simulation.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** The operators of a daemon: they give orders, take them back, and answer what waits for them. */
export interface Operators {
  /** Another operator quarantines a node past the daemon. */
  quarantine(node: string, forMs: DurationMs): void;
  /** Another operator lifts one of the daemon's quarantines. */
  liftQuarantine(): void;
  hold(node: string, forMs: DurationMs): void;
  pause(forMs: DurationMs): void;
  acceptInventory(): void;
  /** To be called again and again: does what is due. */
  attend(): void;
  /** From now on every question is answered with yes, at once, and everything that holds is taken back. */
  setDiligent(): void;
}

/** What stays open or shrunk is looked into after so long. */
const BREAKER_MS: DurationMs = 2 * HOUR_MS;
const BREAKER_MS_DILIGENT: DurationMs = 20 * MINUTE_MS;
const INVENTORY_MS: DurationMs = 30 * MINUTE_MS;
const LOSS_MS: DurationMs = 4 * HOUR_MS;
/** The clocks agree within this after a start. */
const CLOCK_MS: DurationMs = 70 * MINUTE_MS;
/** Of the actions that wait, so many are approved or rejected at a look. */
const APPROVED_SHARE = 0.006;
const REJECTED_SHARE = 0.0006;
/** Faults under which no careful operator believes what is listed. */
const LISTS_WRONGLY: ReadonlySet<string> = new Set(["vanished", "empty_list", "bad_records", "page_ignored"]);

/** Creates the operators of a run. What they decide by chance follows from the seed. */
export function createOperators(simulation: Simulation, seed: number): Operators {
  const random = seededRandom(seed + 17);
  const { parts } = simulation;
  let isDiligent = false;
  /** Orders that are taken back at some time, once the daemon takes orders. */
  let scheduledEnds: { readonly at: number; run(): boolean }[] = [];
  /** Since when something is so that an operator looks into, by what it is. */
  const since = new Map<string, number>();
  /** When each request for an approval was first seen. */
  const askedAt = new Map<string, number>();
  const commands = () => simulation.process()?.remediation.operatorCommands;

  const later = (ms: DurationMs, run: () => boolean): void => {
    scheduledEnds.push({ at: parts.clock.monotonic() + ms, run });
  };

  /** Whether something has been so for a while. */
  function hasLasted(what: string, isSo: boolean, ms: DurationMs): boolean {
    const now = parts.clock.monotonic();
    if (!isSo) since.delete(what);
    else if (!since.has(what)) since.set(what, now);
    return isSo && now - since.get(what)! >= ms;
  }

  function answerApprovals(): void {
    const approvals = simulation.process()?.remediation.view.approvals() ?? [];
    for (const { id } of approvals) {
      assertInForce(id);
      const dice = isDiligent ? 0 : random();
      if (dice < APPROVED_SHARE && commands()?.approve(id).ok) parts.approvals.set(id, parts.clock.monotonic());
      else if (dice >= APPROVED_SHARE && dice < APPROVED_SHARE + REJECTED_SHARE) commands()?.reject(id, "not now");
    }
  }

  /** A request that waits for longer than it may is not to be there any more. */
  function assertInForce(id: string): void {
    const now = parts.clock.monotonic();
    if (!askedAt.has(id)) askedAt.set(id, now);
    const waitedMs = now - askedAt.get(id)!;
    const withinMs = parts.rules.safety.approvalTtlMs + MINUTE_MS;
    // After a start it may take an hour until it is known how long the daemon was down.
    const isSettled = now - parts.bornAt > CLOCK_MS && waitedMs > withinMs;
    if (isSettled) parts.addViolation("approval expired", `${id} still waits after ${waitedMs / MINUTE_MS} min`);
  }

  function handleAlerts(): void {
    const view = simulation.process()?.remediation.view;
    if (view === undefined) return;
    const status = view.status();
    const hasFallenBack = view.policies().some(({ hasFallenBack: policiesInFallback }) => policiesInFallback);
    const isOpen = status.breaker !== null || (isDiligent && hasFallenBack);
    if (hasLasted("breaker", isOpen, isDiligent ? BREAKER_MS_DILIGENT : BREAKER_MS) && commands()?.resetBreaker().ok) {
      parts.breakerModel.reset();
      since.delete("breaker");
    }
    const isShort = status.trust.some(
      ({ reason }) => reason === "inventory_shrunk" || reason === "inventory_incomplete",
    );
    const isLosing = [...parts.recordedState.open].some((id) => isLost(parts.recordedState.episodes.get(id)!));
    if (
      hasLasted("inventory", isShort, INVENTORY_MS) ||
      hasLasted("loss", isLosing, isDiligent ? INVENTORY_MS : LOSS_MS)
    ) {
      acceptInventory();
    }
  }

  function acceptInventory(): void {
    const { world } = parts.service;
    const now = world.now - world.startMs;
    const isWrong = world.faultSchedule.faults.some(
      ({ afterMs, forMs, fault }) => LISTS_WRONGLY.has(fault.kind) && now >= afterMs && now < afterMs + forMs + HOUR_MS,
    );
    if (isWrong || commands()?.acceptInventory().ok !== true) return;
    parts.acceptedAt = parts.clock.monotonic();
    parts.acceptedNodes = parts.process?.snapshot()?.fleet.lastWalk?.seenNodes ?? Number.POSITIVE_INFINITY;
    since.delete("inventory");
    since.delete("loss");
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
      if (commands()?.hold(node, "not now").ok) later(forMs, () => commands()?.release(node).ok ?? false);
    },
    pause(forMs) {
      if (commands()?.pause("not now").ok) later(forMs, () => commands()?.resume().ok ?? false);
    },
    acceptInventory,
    attend() {
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

/** Nodes of the fleet that the daemon has in quarantine, by its journal. */
function quarantinedByUs({ recordedState, service }: SimulationParts): string[] {
  const present = new Set(service.world.fleet.nodes.map(({ id }) => id));
  const open = [...recordedState.open].map((id) => recordedState.episodes.get(id)!);
  return open.flatMap(({ quarantine, node }) => (quarantine === null || !present.has(node) ? [] : [node]));
}
