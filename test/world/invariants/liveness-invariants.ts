import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import type { HoldReason } from "../../../src/policy/decision.ts";
import type { PolicyExplanation } from "../../../src/remediation/status/views.ts";
import type { SimulatedNode } from "../../../src/simulator/fleet/node.ts";
import type { DaemonProcess } from "../daemon/daemon-process.ts";
import type { RecordedState } from "../daemon/recording-store.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";
import { HOLD_ENDS } from "./hold-bounds.ts";

/** Time between two checks. */
const CHECK_INTERVAL_MS: DurationMs = 5 * MINUTE_MS;
/** Covers the checks, evaluation rounds, commands, and faults that ended in the middle of a walk. */
const TOLERANCE_MS: DurationMs = 15 * MINUTE_MS;
/** The longest time without an action while nodes are held by actions on others. */
const WORK_MS: DurationMs = 3 * HOUR_MS;
/** The longest time until an action on a listed node is verified. */
const VERIFIED_WITHIN_MS: DurationMs = 2 * HOUR_MS;

/** Stands for a step whose attempts are not executed, one after the other. Between them, nothing holds the node. */
const RETRIED = "attempts that were not executed" as const;
/** The longest time for which no attempt at a step is executed. */
const RETRIED_MS: DurationMs = 8 * HOUR_MS;

type HoldCause = HoldReason | "nothing" | typeof RETRIED;

/** Invariants of the quiet period at the end of a run, when every cause of a hold has ended. */
export class LivenessInvariants {
  readonly #parts: SimulationParts;
  readonly #startedAt: number;
  /** Start of each hold that was present at every check since then, by policy, node and reason. */
  #heldSince = new Map<string, number>();
  readonly #reported = new Set<string>();
  readonly #outcomes = new Map<string, number>();
  #checkedAt = Number.NEGATIVE_INFINITY;

  /** Creates the invariants of a quiet period that starts now. */
  constructor(parts: SimulationParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.monotonic();
  }

  /** Checks every failing node. Call at every step. */
  check(): void {
    const { process: daemonProcess, clock } = this.#parts;
    const now = clock.monotonic();
    if (now - this.#checkedAt < CHECK_INTERVAL_MS) return;
    if (daemonProcess?.isAlive() !== true || daemonProcess.snapshot() === null) return;
    this.#checkedAt = now;
    this.#parts.serviceNow();
    const held = new Map<string, number>();
    for (const node of failingNodes(this.#parts)) this.#checkNode(daemonProcess, node, held);
    this.#heldSince = held;
  }

  /** Checks the final state. */
  finish(): void {
    const { process, recordedState, posts, startMs, clock } = this.#parts;
    const daemonProcess = process!;
    for (const node of failingNodes(this.#parts)) {
      const outcome = outcomeOf(daemonProcess, recordedState, node);
      this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
      if (node.status === "offline" && !this.#isNoticed(daemonProcess, node))
        this.#addViolation("offline node not noticed", node.id, "no policy fires");
    }
    for (const id of recordedState.inFlight) {
      const { node, sentAt } = recordedState.actions.get(id)!;
      // An action whose POST was never made has only the time of the journal.
      const sentAtMs = posts.find(({ action }) => action?.id === id)?.at ?? (sentAt ?? 0) - startMs;
      const ageMs = clock.monotonic() - sentAtMs;
      if (ageMs > VERIFIED_WITHIN_MS)
        this.#addViolation("action not verified", node, `${id} is not verified after ${minutes(ageMs)}`);
    }
  }

  /** Number of nodes that were failing at the end, by what the daemon had done about them. */
  failingNodes(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#outcomes);
  }

  #checkNode(daemonProcess: DaemonProcess, node: SimulatedNode, held: Map<string, number>): void {
    const now = this.#parts.clock.monotonic();
    for (const explained of runAtOnce(daemonProcess.remediation.view.explain(node.id)).policies) {
      if (!isHolding(explained)) continue;
      const all = explained.blockers.map(({ reason }) => reason);
      // An approval is requested only when nothing else holds the node.
      const reasons = all.length === 1 ? all : all.filter((reason) => reason !== "approval");
      const causes: HoldCause[] = reasons.length === 0 ? ["nothing"] : [...reasons];
      const isRetried = (explained.episode?.failures ?? 0) > 0 && all.every((reason) => reason === "backoff");
      if (isRetried) causes.push(RETRIED);
      for (const reason of causes) {
        const key = `${explained.policy} ${node.id} ${reason}`;
        const since = this.#heldSince.get(key) ?? now;
        held.set(key, since);
        this.#checkHold({ daemonProcess, node, explained, reason, heldMs: now - since });
      }
    }
  }

  #checkHold({ daemonProcess, node, explained, reason, heldMs }: Hold): void {
    const withinMs = boundOf(this.#parts, daemonProcess, explained, reason);
    if (heldMs <= withinMs) return;
    const detail = explained.blockers.map((blocker) => `${blocker.reason}: ${blocker.detail}`).join("; ");
    this.#addViolation(
      `held too long: ${reason}`,
      node.id,
      `held for ${minutes(heldMs)}, limit ${minutes(withinMs)} (${explained.policy}): ${detail}`,
    );
  }

  /** Whether a policy has noticed an offline node, or need not have noticed it yet. */
  #isNoticed(daemonProcess: DaemonProcess, node: SimulatedNode): boolean {
    const { policies, safety } = this.#parts.config;
    const acting = new Set(
      runAtOnce(daemonProcess.remediation.view.policies()).flatMap(({ policy, mode }) =>
        mode === "dry_run" ? [] : [policy.spec.name],
      ),
    );
    const applicable = policies.filter(
      (spec) => acting.has(spec.name) && spec.when.startsWith('node.status == "offline"') && matches(spec, node),
    );
    const isProtected = safety.protected === `node.country == "${node.country}"`;
    if (applicable.length === 0 || isProtected) return true;
    const freshMs = longestFreshMs(daemonProcess);
    const observableSince = this.#parts.startMs + Math.max(this.#startedAt, this.#parts.processStartedAt);
    const offlineMs = this.#parts.serviceNow() - Math.max(node.changedAt, observableSince);
    const withinMs = Math.min(...applicable.map(({ forMs }) => forMs)) + 3 * freshMs + TOLERANCE_MS;
    if (offlineMs <= withinMs) return true;
    const { policies: explained, holds } = runAtOnce(daemonProcess.remediation.view.explain(node.id));
    const isGivenUp = holds.some(({ kind }) => kind === "given_up");
    return isGivenUp || explained.some(({ timer, episode }) => timer?.state === "firing" || episode !== null);
  }

  /** Reports each violation once for each node. */
  #addViolation(invariant: string, node: string, detail: string): void {
    const key = `${invariant} ${node}`;
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#parts.addViolation(invariant, `${node}: ${detail}`);
  }
}

interface Hold {
  readonly daemonProcess: DaemonProcess;
  readonly node: SimulatedNode;
  readonly explained: PolicyExplanation;
  readonly reason: HoldCause;
  readonly heldMs: DurationMs;
}

/** Returns nodes with a failure that does not end without a repair. */
const failingNodes = ({ service }: SimulationParts): readonly SimulatedNode[] =>
  service.network.fleet.nodes.filter(({ failureMode, remedy }) => failureMode !== "none" && remedy !== "time");

/** Returns whether an acting policy fires on the node and has no step in progress. */
const isHolding = ({ mode, timer, episode, verdict }: PolicyExplanation): boolean =>
  mode !== "dry_run" &&
  verdict !== "false" &&
  timer?.state === "firing" &&
  (episode === null || episode.state === "firing" || episode.state === "suspended");

const matches = ({ match }: PolicySpec, { region }: SimulatedNode): boolean =>
  match === null || match !== `node.region != "${region}"`;

/** Returns how long a hold may last, as of now. */
function boundOf(
  parts: SimulationParts,
  daemonProcess: DaemonProcess,
  { policy }: PolicyExplanation,
  reason: HoldCause,
): DurationMs {
  const spec = parts.config.policies.find(({ name }) => name === policy)!;
  const input = { safety: parts.config.safety, spec, freshMs: longestFreshMs(daemonProcess) };
  const slackMs = TOLERANCE_MS + 2 * input.freshMs;
  if (reason === "nothing") return slackMs;
  if (reason === RETRIED) return RETRIED_MS;
  const end = HOLD_ENDS[reason];
  switch (end.by) {
    case "time":
      return end.withinMs(input) + slackMs;
    case "work":
      // Each action restarts the wait.
      return Math.max(
        WORK_MS + slackMs,
        parts.clock.monotonic() - lastPostAt(parts) > WORK_MS ? 0 : Number.POSITIVE_INFINITY,
      );
    case "other":
      return Number.POSITIVE_INFINITY;
    default:
      return end satisfies never;
  }
}

const lastPostAt = ({ posts }: SimulationParts): number => posts.at(-1)?.at ?? Number.NEGATIVE_INFINITY;

/** Returns the longest time, over all collectors, for which data count as fresh. */
function longestFreshMs(daemonProcess: DaemonProcess): DurationMs {
  const ages = Object.values(daemonProcess.plan()).map((planned) => planned?.freshMs ?? 0);
  return Math.max(...ages.filter(Number.isFinite));
}

/** Describes what the daemon has done about a failing node. */
function outcomeOf(daemonProcess: DaemonProcess, { inFlight, actions }: RecordedState, { id }: SimulatedNode): string {
  const { policies, holds } = runAtOnce(daemonProcess.remediation.view.explain(id));
  if (holds.some(({ kind }) => kind === "given_up")) return "given up";
  if ([...inFlight].some((action) => actions.get(action)!.node === id)) return "in flight";
  const real = policies.filter(({ mode }) => mode !== "dry_run");
  const held = real.find(isHolding);
  if (held !== undefined) return `held: ${held.blockers.map(({ reason }) => reason).join(" ")}`;
  if (real.some(({ episode }) => episode !== null)) return "in an episode";
  return real.some(({ timer }) => timer !== null) ? "pending" : "not covered";
}

const minutes = (ms: DurationMs): string => `${Math.round(ms / MINUTE_MS)} min`;
