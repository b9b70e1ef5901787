import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { PolicyExplanation } from "../../src/engine/explanation.ts";
import type { HoldReason } from "../../src/model/decision.ts";
import type { PolicyRule } from "../../src/model/policy.ts";
import { isUnderWay } from "../../src/policy/facts.ts";
import type { SimulatedNode } from "../../src/simulator/node.ts";
import { HOLD_ENDS } from "./hold-bounds.ts";
import type { Life } from "./life.ts";
import type { Stage } from "./stage.ts";

/** What must happen in the quiet period at the end of a run, when every cause of a hold is gone. */
export interface LivenessLaws {
  /** Looks at every node that is ill; to be called at every step. */
  look(): void;
  /** Accounts for every node that is ill at the end. */
  close(): void;
  accounts(): Readonly<Record<string, number>>;
}

/** Between two looks. */
const LOOK_EVERY_MS: DurationMs = 5 * MINUTE_MS;
/** Looks, rounds and orders take a moment, and a fault may have ended in the middle of a walk. */
const SLACK_MS: DurationMs = 15 * MINUTE_MS;
/** Holds that end with the work on other nodes: within this some action is sent, or an order asked for. */
const WORK_MS: DurationMs = 3 * HOUR_MS;
/** An action of a node that is listed is judged within this. */
const JUDGED_MS: DurationMs = 2 * HOUR_MS;

/** Creates the laws of a quiet period that begins now. */
export function livenessLaws(stage: Stage): LivenessLaws {
  const beganAt = stage.clock.monotonic();
  /** Since when each node was held for each reason at every look, by policy, node and reason. */
  let heldSince = new Map<string, number>();
  const told = new Set<string>();
  const counts = new Map<string, number>();
  let lookedAt = Number.NEGATIVE_INFINITY;

  /** Tells a breach once for each node. */
  function breach(law: string, node: string, detail: string): void {
    const key = `${law} ${node}`;
    if (told.has(key)) return;
    told.add(key);
    stage.breach(law, `${node}: ${detail}`);
  }

  function lookAt(life: Life, node: SimulatedNode, held: Map<string, number>): void {
    const now = stage.clock.monotonic();
    for (const explained of life.warden.view.explain(node.id).policies) {
      if (!isHolding(explained)) continue;
      const all = explained.blockers.map(({ reason }) => reason);
      // An approval is asked for only once nothing else holds the node.
      const reasons = all.length === 1 ? all : all.filter((reason) => reason !== "approval");
      for (const reason of reasons.length === 0 ? (["nothing"] as const) : reasons) {
        const key = `${explained.policy} ${node.id} ${reason}`;
        const since = heldSince.get(key) ?? now;
        held.set(key, since);
        judgeHold({ life, node, explained, reason, heldMs: now - since });
      }
    }
  }

  function judgeHold({ life, node, explained, reason, heldMs }: Hold): void {
    const law = `${reason} holds no longer than its bound`;
    const withinMs = boundOf(stage, life, explained, reason);
    if (heldMs <= withinMs) return;
    const detail = explained.blockers.map((each) => `${each.reason}: ${each.detail}`).join("; ");
    breach(law, node.id, `held for ${minutes(heldMs)}, of ${minutes(withinMs)} (${explained.policy}): ${detail}`);
  }

  function noticed(life: Life, node: SimulatedNode): boolean {
    const { policies, safety } = stage.rules;
    const acting = new Set(
      life.warden.view.policies().flatMap(({ rule, mode }) => (mode === "dry_run" ? [] : [rule.name])),
    );
    const covering = policies.filter(
      (rule) => acting.has(rule.name) && rule.when.startsWith('node.status == "offline"') && isAbout(rule, node),
    );
    const isSpared = safety.protected === `node.country == "${node.country}"`;
    if (covering.length === 0 || isSpared) return true;
    const { freshMs } = freshest(life);
    const offlineMs = stage.serviceNow() - Math.max(node.changedAt, stage.startMs + Math.max(beganAt, stage.bornAt));
    const withinMs = Math.min(...covering.map(({ forMs }) => forMs)) + 3 * freshMs + SLACK_MS;
    if (offlineMs <= withinMs) return true;
    const { policies: explained, holds } = life.warden.view.explain(node.id);
    const isGivenUp = holds.some(({ kind }) => kind === "given_up");
    return isGivenUp || explained.some(({ timer, episode }) => timer?.state === "firing" || episode !== null);
  }

  return {
    look() {
      const life = stage.life;
      const now = stage.clock.monotonic();
      if (life?.isAlive() !== true || life.snapshot() === null || now - lookedAt < LOOK_EVERY_MS) return;
      lookedAt = now;
      stage.serviceNow();
      const held = new Map<string, number>();
      for (const node of illNodes(stage)) lookAt(life, node, held);
      heldSince = held;
    },
    close() {
      const life = stage.life!;
      for (const node of illNodes(stage)) {
        const account = accountOf(life, node);
        counts.set(account, (counts.get(account) ?? 0) + 1);
        if (node.status === "offline" && !noticed(life, node))
          breach("an offline node is noticed", node.id, "no policy fires");
      }
      for (const id of stage.chronicle.underWay) {
        const { node, sentAt } = stage.chronicle.actions.get(id)!;
        const ageMs = stage.startMs + stage.clock.monotonic() + stage.forwardMs - (sentAt ?? 0);
        if (ageMs > JUDGED_MS) breach("an action is judged", node, `${id} is not yet judged after ${minutes(ageMs)}`);
      }
    },
    accounts: () => Object.fromEntries(counts),
  };
}

interface Hold {
  readonly life: Life;
  readonly node: SimulatedNode;
  readonly explained: PolicyExplanation;
  readonly reason: HoldReason | "nothing";
  readonly heldMs: DurationMs;
}

/** Nodes of the fleet that something ails which does not pass by itself. */
const illNodes = ({ service }: Stage): readonly SimulatedNode[] =>
  service.world.fleet.nodes.filter(({ ailment, cure }) => ailment !== "none" && cure !== "time");

/** Whether a policy that acts fires on a node, and no step of it is under way. */
const isHolding = ({ mode, timer, episode, verdict }: PolicyExplanation): boolean =>
  mode !== "dry_run" &&
  verdict !== "false" &&
  timer?.state === "firing" &&
  (episode === null || episode.state === "firing" || episode.state === "suspended");

const isAbout = ({ match }: PolicyRule, { region }: SimulatedNode): boolean =>
  match === null || match !== `node.region != "${region}"`;

/** How long the hold may last at this moment. */
function boundOf(stage: Stage, life: Life, { policy }: PolicyExplanation, reason: HoldReason | "nothing"): DurationMs {
  const rule = stage.rules.policies.find(({ name }) => name === policy)!;
  const terms = { safety: stage.rules.safety, rule, ...freshest(life) };
  const slackMs = SLACK_MS + 2 * terms.freshMs;
  if (reason === "nothing") return slackMs;
  const end = HOLD_ENDS[reason];
  switch (end.by) {
    case "time":
      return end.withinMs(terms) + slackMs;
    case "work":
      // Counted anew with each action.
      return Math.max(
        WORK_MS + slackMs,
        stage.clock.monotonic() - lastPostAt(stage) > WORK_MS ? 0 : Number.POSITIVE_INFINITY,
      );
    case "other":
      return Number.POSITIVE_INFINITY;
    default:
      return end satisfies never;
  }
}

const lastPostAt = ({ posts }: Stage): number => posts.at(-1)?.at ?? Number.NEGATIVE_INFINITY;

/** The longest time for which anything that is collected counts as fresh. */
function freshest(life: Life): { readonly freshMs: DurationMs } {
  const ages = Object.values(life.plan()).map((planned) => planned?.freshMs ?? 0);
  return { freshMs: Math.max(...ages.filter(Number.isFinite)) };
}

/** What has become of a node that is ill at the end. */
function accountOf(life: Life, { id }: SimulatedNode): string {
  const { policies, holds, actions } = life.warden.view.explain(id);
  if (holds.some(({ kind }) => kind === "given_up")) return "given up";
  if (actions.some(isUnderWay)) return "under way";
  const real = policies.filter(({ mode }) => mode !== "dry_run");
  const held = real.find(isHolding);
  if (held !== undefined) return `held: ${held.blockers.map(({ reason }) => reason).join(" ")}`;
  if (real.some(({ episode }) => episode !== null)) return "followed";
  return real.some(({ timer }) => timer !== null) ? "pending" : "not covered";
}

const minutes = (ms: DurationMs): string => `${Math.round(ms / MINUTE_MS)} min`;
