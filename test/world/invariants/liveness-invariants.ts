import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicyRule } from "../../../src/model/policy/policy.ts";
import type { HoldReason } from "../../../src/model/remediation/decision.ts";
import { isInFlight } from "../../../src/policy/facts.ts";
import type { PolicyExplanation } from "../../../src/remediation/status/views.ts";
import type { SimulatedNode } from "../../../src/simulator/fleet/node.ts";
import type { DaemonProcess } from "../daemon/daemon-process.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";
import { HOLD_ENDS } from "./hold-bounds.ts";

/** What must happen in the quiet period at the end of a run, when every cause of a hold is gone. */
export interface LivenessInvariants {
  /** Looks at every node that is ill; to be called at every step. */
  check(): void;
  /** Accounts for every node that is ill at the end. */
  finish(): void;
  holdAccounts(): Readonly<Record<string, number>>;
}

/** Between two looks. */
const CHECK_INTERVAL_MS: DurationMs = 5 * MINUTE_MS;
/** Looks, rounds and orders take a moment, and a fault may have ended in the middle of a walk. */
const TOLERANCE_MS: DurationMs = 15 * MINUTE_MS;
/** Holds that end with the work on other nodes: within this some action is sent, or an order asked for. */
const WORK_MS: DurationMs = 3 * HOUR_MS;
/** An action of a node that is listed is judged within this. */
const JUDGED_MS: DurationMs = 2 * HOUR_MS;

/** Creates the laws of a quiet period that begins now. */
export function createLivenessInvariants(parts: SimulationParts): LivenessInvariants {
  const beganAt = parts.clock.monotonic();
  /** Since when each node was held for each reason at every look, by policy, node and reason. */
  let heldSince = new Map<string, number>();
  const told = new Set<string>();
  const counts = new Map<string, number>();
  let checkedAt = Number.NEGATIVE_INFINITY;

  /** Tells a breach once for each node. */
  function addViolation(invariant: string, node: string, detail: string): void {
    const key = `${invariant} ${node}`;
    if (told.has(key)) return;
    told.add(key);
    parts.addViolation(invariant, `${node}: ${detail}`);
  }

  function checkNode(daemonProcess: DaemonProcess, node: SimulatedNode, held: Map<string, number>): void {
    const now = parts.clock.monotonic();
    for (const explained of daemonProcess.remediation.view.explain(node.id).policies) {
      if (!isHolding(explained)) continue;
      const all = explained.blockers.map(({ reason }) => reason);
      // An approval is asked for only once nothing else holds the node.
      const reasons = all.length === 1 ? all : all.filter((reason) => reason !== "approval");
      for (const reason of reasons.length === 0 ? (["nothing"] as const) : reasons) {
        const key = `${explained.policy} ${node.id} ${reason}`;
        const since = heldSince.get(key) ?? now;
        held.set(key, since);
        checkHold({ life: daemonProcess, node, explained, reason, heldMs: now - since });
      }
    }
  }

  function checkHold({ life: daemonProcess, node, explained, reason, heldMs }: Hold): void {
    const invariant = `${reason} holds no longer than its bound`;
    const withinMs = boundOf(parts, daemonProcess, explained, reason);
    if (heldMs <= withinMs) return;
    const detail = explained.blockers.map((each) => `${each.reason}: ${each.detail}`).join("; ");
    addViolation(
      invariant,
      node.id,
      `held for ${minutes(heldMs)}, of ${minutes(withinMs)} (${explained.policy}): ${detail}`,
    );
  }

  function isAlerted(daemonProcess: DaemonProcess, node: SimulatedNode): boolean {
    const { policies, safety } = parts.rules;
    const acting = new Set(
      daemonProcess.remediation.view.policies().flatMap(({ rule, mode }) => (mode === "dry_run" ? [] : [rule.name])),
    );
    const covering = policies.filter(
      (rule) => acting.has(rule.name) && rule.when.startsWith('node.status == "offline"') && isAbout(rule, node),
    );
    const isExcluded = safety.protected === `node.country == "${node.country}"`;
    if (covering.length === 0 || isExcluded) return true;
    const { freshMs } = freshest(daemonProcess);
    const offlineMs = parts.serviceNow() - Math.max(node.changedAt, parts.startMs + Math.max(beganAt, parts.bornAt));
    const withinMs = Math.min(...covering.map(({ forMs }) => forMs)) + 3 * freshMs + TOLERANCE_MS;
    if (offlineMs <= withinMs) return true;
    const { policies: explained, holds } = daemonProcess.remediation.view.explain(node.id);
    const isGivenUp = holds.some(({ kind }) => kind === "given_up");
    return isGivenUp || explained.some(({ timer, episode }) => timer?.state === "firing" || episode !== null);
  }

  return {
    check() {
      const daemonProcess = parts.process;
      const now = parts.clock.monotonic();
      if (daemonProcess?.isAlive() !== true || daemonProcess.snapshot() === null || now - checkedAt < CHECK_INTERVAL_MS)
        return;
      checkedAt = now;
      parts.serviceNow();
      const held = new Map<string, number>();
      for (const node of failingNodes(parts)) checkNode(daemonProcess, node, held);
      heldSince = held;
    },
    finish() {
      const daemonProcess = parts.process!;
      for (const node of failingNodes(parts)) {
        const account = holdAccountOf(daemonProcess, node);
        counts.set(account, (counts.get(account) ?? 0) + 1);
        if (node.status === "offline" && !isAlerted(daemonProcess, node))
          addViolation("an offline node is noticed", node.id, "no policy fires");
      }
      for (const id of parts.recordedState.inFlight) {
        const { node, sentAt } = parts.recordedState.actions.get(id)!;
        const ageMs = parts.startMs + parts.clock.monotonic() + parts.forwardMs - (sentAt ?? 0);
        if (ageMs > JUDGED_MS)
          addViolation("an action is judged", node, `${id} is not yet judged after ${minutes(ageMs)}`);
      }
    },
    holdAccounts: () => Object.fromEntries(counts),
  };
}

interface Hold {
  readonly life: DaemonProcess;
  readonly node: SimulatedNode;
  readonly explained: PolicyExplanation;
  readonly reason: HoldReason | "nothing";
  readonly heldMs: DurationMs;
}

/** Nodes of the fleet that something ails which does not pass by itself. */
const failingNodes = ({ service }: SimulationParts): readonly SimulatedNode[] =>
  service.world.fleet.nodes.filter(({ failureMode: ailment, remedy: cure }) => ailment !== "none" && cure !== "time");

/** Whether a policy that acts fires on a node, and no step of it is under way. */
const isHolding = ({ mode, timer, episode, verdict }: PolicyExplanation): boolean =>
  mode !== "dry_run" &&
  verdict !== "false" &&
  timer?.state === "firing" &&
  (episode === null || episode.state === "firing" || episode.state === "suspended");

const isAbout = ({ match }: PolicyRule, { region }: SimulatedNode): boolean =>
  match === null || match !== `node.region != "${region}"`;

/** How long the hold may last at this moment. */
function boundOf(
  parts: SimulationParts,
  daemonProcess: DaemonProcess,
  { policy }: PolicyExplanation,
  reason: HoldReason | "nothing",
): DurationMs {
  const rule = parts.rules.policies.find(({ name }) => name === policy)!;
  const terms = { safety: parts.rules.safety, rule, ...freshest(daemonProcess) };
  const slackMs = TOLERANCE_MS + 2 * terms.freshMs;
  if (reason === "nothing") return slackMs;
  const end = HOLD_ENDS[reason];
  switch (end.by) {
    case "time":
      return end.withinMs(terms) + slackMs;
    case "work":
      // Counted anew with each action.
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

/** The longest time for which anything that is collected counts as fresh. */
function freshest(daemonProcess: DaemonProcess): { readonly freshMs: DurationMs } {
  const ages = Object.values(daemonProcess.plan()).map((planned) => planned?.freshMs ?? 0);
  return { freshMs: Math.max(...ages.filter(Number.isFinite)) };
}

/** What has become of a node that is ill at the end. */
function holdAccountOf(daemonProcess: DaemonProcess, { id }: SimulatedNode): string {
  const { policies, holds, actions } = daemonProcess.remediation.view.explain(id);
  if (holds.some(({ kind }) => kind === "given_up")) return "given up";
  if (actions.some(isInFlight)) return "under way";
  const real = policies.filter(({ mode }) => mode !== "dry_run");
  const held = real.find(isHolding);
  if (held !== undefined) return `held: ${held.blockers.map(({ reason }) => reason).join(" ")}`;
  if (real.some(({ episode }) => episode !== null)) return "followed";
  return real.some(({ timer }) => timer !== null) ? "pending" : "not covered";
}

const minutes = (ms: DurationMs): string => `${Math.round(ms / MINUTE_MS)} min`;
