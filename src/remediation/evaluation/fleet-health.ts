import { DAY_MS, MINUTE_MS } from "../../base/duration.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import type { Change } from "../../model/remediation/journal.ts";
import type { NodeId } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import { type Breaker, CLOSED_BREAKER, countFirings, type Storm, weather } from "../../policy/guards/storm-and-breaker.ts";
import { canaryOf } from "../../policy/episodes/canary.ts";
import { canProceed } from "../../policy/decision.ts";
import { type ActivePolicy, type Facts, isShadow, isUnderWay, type Survey, surveyFleet } from "../../policy/facts.ts";
import type { Incident } from "../../policy/guards/correlated-failure.ts";
import { assumedActions, nodeLimits } from "../../policy/guards/limits.ts";
import type { Policy } from "../../policy/policy.ts";
import { windowBlockers } from "../../policy/guards/time-window.ts";
import type { Proposal } from "../state/journaled-state.ts";
import { candidateOf } from "./candidates.ts";
import { createIncidentTracker, INCIDENTS } from "./incidents.ts";
import type { ObstacleCache } from "./external-blockers.ts";
import type { Sight } from "./inventory-trust.ts";
import { activePolicies, type Ward } from "../context.ts";

/** What a look at the fleet brought, by policy. */
export interface News {
  /** Nodes that began to fire. */
  readonly firing: ReadonlyMap<string, readonly NodeId[]>;
  /** Nodes that went bad, and were observed not to be so before. */
  readonly onsets: ReadonlyMap<string, readonly NodeId[]>;
}

/** Everything beyond the single node that decisions rest on: real ones, and dry runs on their own. */
export interface Situation {
  /**
   * Counts what a look brought. Returns what is to be written in the same transaction as the timers of that look, so that
   * a kill between two transactions loses nothing that limits count.
   */
  note(news: News): readonly Change[];
  /** Brings alarms up to date with the fleet and the timers. `isBroken`: fleet data is not trusted. */
  update(isBroken: boolean): void;
  facts(shadow: boolean, sight: Sight): Facts;
  breaker(): Breaker;
  storm(): Storm | null;
  incidents(): readonly Incident[];
  /**
   * Closes the breaker if it is open, once that was written down. What fires now is not counted again, also under the
   * policies `reset`, which act again.
   */
  resetBreaker(reset: readonly string[]): Proposal;
}

interface Alerts {
  breaker: Breaker;
  storm: Storm | null;
}

const BREAKER = "warden.breaker";
/** The fact that keeps the fleet-wide outage. */
export const STORM = "warden.storm";
/** Policies whose firing nodes the breaker has counted: those that acted when it counted last. */
const ACTING = "warden.acting";
/** The fact that says since when, and why, everything is paused. */
export const PAUSED = "warden.paused";
/** How long the end of a storm may move on before it is written down again. */
const REWRITE_MS = MINUTE_MS;

/** The situation as the books remember it. */
export function createSituation(ward: Ward, obstacles: ObstacleCache): Situation {
  const { books, rules, clock, client } = ward;
  const { casebook } = books;
  const incidents = createIncidentTracker(ward);
  let counted: readonly string[] = parsed<string[]>(casebook.fact(ACTING)) ?? [];
  const real: Alerts = {
    breaker: parsed<Breaker>(casebook.fact(BREAKER)) ?? CLOSED_BREAKER,
    storm: resumedStorm(),
  };
  // Dry runs have a breaker and a storm of their own, which begin anew with the process.
  const shadowed: Alerts = { breaker: CLOSED_BREAKER, storm: null };
  /** Losses after this instant are new to the breaker. Those of the last hour are counted again after a restart. */
  let lossesCountedTo = books.now() - rules.safety.breaker.withinMs;
  const written = new Map<string, { at: EpochMs; text: string }>();

  /** A storm that lasted when the process stopped may have lasted until now: its cool-down begins anew. */
  function resumedStorm(): Storm | null {
    const storm = parsed<Storm>(casebook.fact(STORM));
    return storm?.blowing === true ? { ...storm, until: books.now() + rules.safety.stormCooldownMs } : storm;
  }

  const survey = (shadow: boolean): Survey =>
    surveyFleet(ward.view!.snapshot.fleet, casebook, activePolicies(ward), shadow);

  function count(alerts: Alerts, firing: readonly NodeId[]): void {
    const { withinMs: breakerWithin } = rules.safety.breaker;
    const limit = nodeLimits(rules.safety, ward.view!.snapshot.fleet.count).breaker;
    alerts.breaker = countFirings(alerts.breaker, firing, { now: books.now(), withinMs: breakerWithin, limit });
  }

  /**
   * Policies that act since a moment ago: what fired under them in a dry run counts now, and the incidents that the dry
   * run saw hold the nodes that are still bad.
   */
  function takeOver(policies: readonly ActivePolicy[]): void {
    const acting = policies.filter((each) => !isShadow(each));
    const names = acting.map(({ policy }) => policy.rule.name);
    const added = acting.filter(({ policy }) => !counted.includes(policy.rule.name));
    counted = names;
    if (added.length === 0) return;
    const firing = added.flatMap(({ policy }) =>
      [...casebook.timersOf(policy.rule.name)].flatMap(([node, { state }]) => (state === "firing" ? [node] : [])),
    );
    if (firing.length > 0) count(real, firing);
    incidents.takeOver(added);
  }

  function updateStorm(alerts: Alerts, { nodes, unhealthy }: Survey): void {
    const limit = nodeLimits(rules.safety, nodes).maxUnhealthy;
    const { stormCooldownMs } = rules.safety;
    alerts.storm = weather(alerts.storm, { nodes: unhealthy, limit }, books.now(), stormCooldownMs);
  }

  /** A fact, where it has changed. */
  function changed(key: string, value: unknown): Change[] {
    const text = JSON.stringify(value);
    if (text === (written.get(key)?.text ?? casebook.fact(key))) return [];
    written.set(key, { at: books.now(), text });
    return [{ kind: "fact", key, value: text }];
  }

  function changedCounts(): Change[] {
    return [...changed(ACTING, counted), ...changed(BREAKER, real.breaker), ...changed(INCIDENTS, incidents.row())];
  }

  /** The end of a storm moves on at every look: that alone is not worth a write each time. */
  function changedStorm(before: Storm | null): Change[] {
    const isNews = (real.storm === null) !== (before === null) || real.storm?.blowing !== before?.blowing;
    const isDue = books.now() - (written.get(STORM)?.at ?? Number.NEGATIVE_INFINITY) >= REWRITE_MS;
    return isNews || isDue ? changed(STORM, real.storm) : [];
  }

  function inFlight(shadow: boolean): Action[] {
    return [...casebook.actions()].filter((action) => action.shadow === shadow && isUnderWay(action));
  }

  /** Windows are looked up once a policy: many candidates ask. */
  function closedNow(): Facts["closed"] {
    const at = instants();
    const known = new Map<Policy, readonly Blocker[]>();
    return (policy) => {
      const found = known.get(policy) ?? windowBlockers(policy.rule.windows, ward.intervals, at);
      known.set(policy, found);
      return [...found, ...obstacles.blockers(policy)];
    };
  }

  function instants(): EpochMs[] {
    const service = client.serviceTime(clock.monotonic());
    return service === null ? [clock.now()] : [clock.now(), service];
  }

  function pausedSince(): string | null {
    const paused = parsed<{ at: EpochMs; reason: string; operator?: string }>(casebook.fact(PAUSED));
    if (paused === null) return null;
    const by = paused.operator === undefined ? "" : ` by ${paused.operator}`;
    return `since ${new Date(paused.at).toISOString()}${by}: ${paused.reason}`;
  }

  return {
    note(news) {
      const policies = activePolicies(ward);
      takeOver(policies);
      const firing = policies.filter(({ policy }) => news.firing.has(policy.rule.name));
      const nodesOf = (of: readonly ActivePolicy[]) => of.flatMap(({ policy }) => news.firing.get(policy.rule.name)!);
      count(real, nodesOf(firing.filter((each) => !isShadow(each))));
      count(shadowed, nodesOf(firing));
      incidents.add(news.onsets, policies);
      return changedCounts();
    },
    update(isBroken) {
      const policies = activePolicies(ward);
      const before = real.storm;
      takeOver(policies);
      const seen = survey(false);
      count(
        real,
        seen.lost.flatMap(({ node, unlistedAt }) => (unlistedAt! > lossesCountedTo ? [node] : [])),
      );
      lossesCountedTo = books.now();
      count(shadowed, []);
      // A breaker of dry runs closes by itself, once nothing fired for its time.
      const { open } = shadowed.breaker;
      if (open !== null && books.now() - open.openedAt > rules.safety.breaker.withinMs) {
        shadowed.breaker = CLOSED_BREAKER;
      }
      updateStorm(real, seen);
      updateStorm(shadowed, survey(true));
      // Timers that were taken back because nothing is trusted don't show that a node recovered.
      if (!isBroken) incidents.end(policies);
      const changes = [...changedCounts(), ...changedStorm(before)];
      if (changes.length > 0) books.record(changes);
    },
    facts(shadow, sight) {
      const now = books.now();
      const seen = survey(shadow);
      const alerts = shadow ? shadowed : real;
      const { perMs } = rules.safety.maxActions;
      const assumed = shadow ? [] : assumedActions(books.beganAt(), rules.safety, now);
      const canaries = new Map<Policy, Episode | null>();
      const facts: Facts = {
        now,
        instants: instants(),
        shadow,
        safety: rules.safety,
        limits: nodeLimits(rules.safety, seen.nodes),
        survey: seen,
        casebook,
        paused: pausedSince(),
        journal: books.problem(),
        credentials: shadow || ward.credentials === null ? null : ward.credentials.message,
        trust: sight.blockers,
        ...alerts,
        incidents: incidents.current(shadow),
        inFlight: inFlight(shadow),
        actedAt: [...assumed, ...actedSince(casebook.actions(), shadow, now - Math.min(perMs, DAY_MS))],
        assumedActions: assumed.length,
        closed: closedNow(),
        canary(active) {
          const found = canaries.get(active.policy);
          if (found !== undefined) return found;
          const canary = canaryOf(active.policy, casebook, ({ node }) => {
            const candidate = candidateOf(ward, active, node);
            return candidate !== null && canProceed(candidate, facts);
          });
          canaries.set(active.policy, canary);
          return canary;
        },
      };
      return facts;
    },
    breaker: () => real.breaker,
    storm: () => real.storm,
    incidents: () => incidents.current(false),
    resetBreaker(reset) {
      const acting = [...new Set([...counted, ...reset])];
      const breaker = real.breaker.open === null ? real.breaker : CLOSED_BREAKER;
      const facts = [
        [BREAKER, JSON.stringify(breaker)],
        [ACTING, JSON.stringify(acting)],
      ] as const;
      return {
        changes: facts.map(([key, value]) => ({ kind: "fact", key, value })),
        adopt() {
          real.breaker = breaker;
          counted = acting;
          for (const [key, text] of facts) written.set(key, { at: books.now(), text });
        },
      };
    },
  };
}

/** When actions were sent since then. */
function actedSince(actions: Iterable<Action>, shadow: boolean, since: EpochMs): EpochMs[] {
  const instants: EpochMs[] = [];
  for (const { shadow: isShadow, sentAt } of actions) {
    if (isShadow === shadow && sentAt !== null && sentAt > since) instants.push(sentAt);
  }
  return instants;
}

const parsed = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T));
