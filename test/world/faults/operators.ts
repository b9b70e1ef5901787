import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { type Random, seededRandom } from "../../../src/base/random.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import type { Quarantine } from "../../../src/model/remediation/episode.ts";
import type { CommandReply } from "../../../src/model/remediation/operator-command.ts";
import { isLost } from "../../../src/policy/episodes/episode-states.ts";
import { type CommandsByName, commandsOf } from "../../harness/operator-commands.ts";
import type { Simulation } from "../daemon/simulation.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** How long a problem lasts before an operator reacts to it. */
const BREAKER_MS: DurationMs = 2 * HOUR_MS;
const BREAKER_MS_DILIGENT: DurationMs = 20 * MINUTE_MS;
/** A request expires between two steps of a round, and one step may wait for a slow service this long. */
const STEP_MS_MAX: DurationMs = 5 * MINUTE_MS;
const INVENTORY_MS: DurationMs = 30 * MINUTE_MS;
const LOST_NODES_MS: DurationMs = 4 * HOUR_MS;
const OVERDUE_MS: DurationMs = HOUR_MS;
/** Time after the first walk of a process by which the daemon knows how long it was down. */
const CLOCK_SETTLED_MS: DurationMs = 70 * MINUTE_MS;
/** Shares of the pending requests that are approved or rejected at each step. */
const APPROVED_SHARE = 0.006;
const REJECTED_SHARE = 0.0006;
/** Faults that list a wrong inventory: an operator does not accept it. */
const WRONG_INVENTORY_FAULTS: ReadonlySet<string> = new Set(["vanished", "empty_list", "bad_records", "page_ignored"]);

/** Simulated operators: they send commands to the daemon, revoke them, and answer approval requests. */
export class Operators {
  readonly #simulation: Simulation;
  readonly #parts: SimulationParts;
  readonly #random: Random;
  #isDiligent = false;
  /** Commands to revoke at a time, or later if the daemon is down then. `run` returns whether the daemon accepted. */
  #scheduledEnds: { readonly at: number; run(): Promise<boolean> }[] = [];
  /** Start of each current problem, by name. */
  readonly #problemSince = new Map<string, number>();
  /** When each approval request was first observed. */
  readonly #requestedAt = new Map<string, number>();
  /** The last time at which the daemon had not yet completed a walk since its start. */
  #withoutWalkAt = 0;

  /** Creates the operators of a run. The seed determines their random decisions. */
  constructor(simulation: Simulation, seed: number) {
    this.#simulation = simulation;
    this.#parts = simulation.parts;
    this.#random = seededRandom(seed + 17);
  }

  /** Quarantines a node through the service's API, without the daemon. */
  quarantine(node: string, forMs: DurationMs): void {
    const until = this.#parts.serviceNow() + forMs;
    if (!this.#parts.service.network.fleet.nodes.some(({ id }) => id === node)) return;
    this.#simulation.interventions.quarantine(node, until);
    this.#parts.withOperator.set(node, until);
  }

  /** Lifts one of the daemon's quarantines through the service's API. */
  liftQuarantine(): void {
    const ours = quarantinedByUs(this.#parts, () => true);
    const node = ours[Math.floor(this.#random() * ours.length)];
    if (node !== undefined) this.#simulation.interventions.liftQuarantine(node);
  }

  async hold(node: string, forMs: DurationMs): Promise<void> {
    if (await this.#mayBeAccepted((commands) => commands.hold(node, "not now")))
      this.#runLater(forMs, () => this.#isAccepted((commands) => commands.release(node)));
  }

  async pause(forMs: DurationMs): Promise<void> {
    if (await this.#mayBeAccepted((commands) => commands.pause("not now")))
      this.#runLater(forMs, () => this.#isAccepted((commands) => commands.resume()));
  }

  async acceptInventory(): Promise<void> {
    const { network } = this.#parts.service;
    const now = network.now - network.startMs;
    const isWrong = network.faultSchedule.faults.some(
      ({ afterMs, forMs, fault }) =>
        WRONG_INVENTORY_FAULTS.has(fault.kind) && now >= afterMs && now < afterMs + forMs + HOUR_MS,
    );
    if (isWrong || !(await this.#isAccepted((commands) => commands.acceptInventory()))) return;
    this.#parts.acceptedAt = this.#parts.clock.monotonic();
    this.#parts.hasKnownFleet = false;
    const seenNodes = this.#parts.process?.snapshot()?.fleet.lastWalk?.seenNodes;
    this.#parts.acceptedNodes = seenNodes ?? Number.POSITIVE_INFINITY;
    this.#parts.confirmedNodes = Math.max(this.#parts.confirmedNodes, seenNodes ?? Number.POSITIVE_INFINITY);
    this.#problemSince.delete("inventory");
    this.#problemSince.delete("lost nodes");
  }

  /** Does what is due. Call at every step. */
  async step(): Promise<void> {
    const now = this.#parts.clock.monotonic();
    const scheduled = this.#scheduledEnds;
    this.#scheduledEnds = [];
    for (const end of scheduled)
      if ((end.at > now && !this.#isDiligent) || !(await end.run())) this.#scheduledEnds.push(end);
    await this.#answerApprovals();
    await this.#handleAlerts();
  }

  /** From now on, approves every request immediately and revokes all pauses and holds. */
  setDiligent(): void {
    this.#isDiligent = true;
  }

  /** Sends a command. Returns whether the daemon accepted it, which it does not if it is down. */
  async #isAccepted(send: (commands: CommandsByName) => Promise<CommandReply>): Promise<boolean> {
    const process = this.#simulation.process();
    return process !== null && (await send(commandsOf(process.remediation.operatorCommands))).ok;
  }

  /** Like {@link #isAccepted}, but also true if the daemon was killed before it replied: the command may be journaled. */
  async #mayBeAccepted(send: (commands: CommandsByName) => Promise<CommandReply>): Promise<boolean> {
    const process = this.#simulation.process();
    return (await this.#isAccepted(send)) || this.#simulation.process() !== process;
  }

  #runLater(ms: DurationMs, run: () => Promise<boolean>): void {
    this.#scheduledEnds.push({ at: this.#parts.clock.monotonic() + ms, run });
  }

  /** Whether a problem has lasted for `ms`. */
  #hasLasted(problem: string, isPresent: boolean, ms: DurationMs): boolean {
    const now = this.#parts.clock.monotonic();
    if (!isPresent) this.#problemSince.delete(problem);
    else if (!this.#problemSince.has(problem)) this.#problemSince.set(problem, now);
    return isPresent && now - this.#problemSince.get(problem)! >= ms;
  }

  async #answerApprovals(): Promise<void> {
    const approvals = this.#simulation.process()?.remediation.view.approvals() ?? [];
    for (const { id } of approvals) {
      // A command may have killed the process.
      if (this.#simulation.process() === null) return;
      this.#checkNotExpired(id);
      const draw = this.#isDiligent ? 0 : this.#random();
      if (draw < APPROVED_SHARE && (await this.#isAccepted((commands) => commands.approve(id))))
        this.#parts.approvals.set(id, this.#parts.clock.monotonic());
      else if (draw >= APPROVED_SHARE && draw < APPROVED_SHARE + REJECTED_SHARE)
        await this.#isAccepted((commands) => commands.reject(id, "not now"));
    }
  }

  /** A request must disappear when it expires. */
  #checkNotExpired(id: string): void {
    const { clock, config, processStartedAt, machine, addViolation } = this.#parts;
    const now = clock.monotonic();
    const fleet = this.#simulation.process()!.snapshot()?.fleet;
    if (fleet === undefined || fleet.settledAt === null) this.#withoutWalkAt = now;
    if (!this.#requestedAt.has(id)) this.#requestedAt.set(id, now);
    const waitedMs = now - this.#requestedAt.get(id)!;
    const isExpired = waitedMs > config.safety.approvalTtlMs + STEP_MS_MAX;
    // The daemon may take an hour from the first response of the service to learn how long it was down.
    if (isExpired && now - Math.max(processStartedAt, machine.resumedAt(), this.#withoutWalkAt) > CLOCK_SETTLED_MS)
      addViolation("approval expired", `${id} is still pending after ${waitedMs / MINUTE_MS} min`);
  }

  async #handleAlerts(): Promise<void> {
    const view = this.#simulation.process()?.remediation.view;
    if (view === undefined) return;
    const { recordedState, breakerModel } = this.#parts;
    const status = view.status();
    const isAnyFallenBack = runAtOnce(view.policies()).some(({ hasFallenBack }) => hasFallenBack);
    const isOpen = status.breaker !== null || (this.#isDiligent && isAnyFallenBack);
    const breakerMs = this.#isDiligent ? BREAKER_MS_DILIGENT : BREAKER_MS;
    if (
      this.#hasLasted("breaker", isOpen, breakerMs) &&
      (await this.#isAccepted((commands) => commands.resetBreaker()))
    ) {
      breakerModel.reset();
      this.#problemSince.delete("breaker");
    }
    const overdue = quarantinedByUs(this.#parts, ({ overdue }) => overdue);
    if (this.#hasLasted("overdue", overdue.length > 0, OVERDUE_MS))
      overdue.forEach(this.#simulation.interventions.liftQuarantine);
    const isShrunk = status.trust.some(
      ({ reason }) => reason === "inventory_shrunk" || reason === "inventory_incomplete",
    );
    const hasLostNodes = [...recordedState.open].some((id) => isLost(recordedState.episodes.get(id)!));
    const lostNodesMs = this.#isDiligent ? INVENTORY_MS : LOST_NODES_MS;
    if (
      this.#hasLasted("inventory", isShrunk, INVENTORY_MS) ||
      this.#hasLasted("lost nodes", hasLostNodes, lostNodesMs)
    )
      await this.acceptInventory();
  }
}

/** Returns the nodes with such a quarantine by the daemon, by its journal. */
function quarantinedByUs(
  { recordedState, service }: SimulationParts,
  isSuch: (quarantine: Quarantine) => boolean,
): string[] {
  const present = new Set(service.network.fleet.nodes.map(({ id }) => id));
  const open = [...recordedState.open].map((id) => recordedState.episodes.get(id)!);
  return open.flatMap(({ quarantine, node }) =>
    quarantine !== null && isSuch(quarantine) && present.has(node) ? [node] : [],
  );
}
