import { DAY_MS, MINUTE_MS } from "../base/duration.ts";
import type { Blocker } from "../model/decision.ts";
import type { Action } from "../model/episode.ts";
import type { NodeId } from "../model/node.ts";
import type { EpochMs } from "../model/time.ts";
import {
  type Breaker,
  CLOSED_BREAKER,
  countFirings,
  type Incident,
  incidentsNow,
  type Storm,
  weather,
} from "../policy/alarm.ts";
import { type Facts, isUnderWay, type Survey, surveyFleet } from "../policy/facts.ts";
import { assumedActions, nodeLimits } from "../policy/limits.ts";
import type { Policy } from "../policy/policy.ts";
import { windowBlockers } from "../policy/window.ts";
import type { Proposal } from "./books.ts";
import type { ObstacleCache } from "./obstacles.ts";
import type { Sight } from "./sighting.ts";
import { activePolicies, type Ward } from "./ward.ts";

/** Everything beyond the single node that decisions rest on: real ones, and dry runs on their own. */
export interface Situation {
  /** Brings alarms up to date with the fleet and the timers. `begun`: nodes that began to fire, by policy. */
  update(begun: ReadonlyMap<string, readonly NodeId[]>): void;
  facts(shadow: boolean, sight: Sight): Facts;
  breaker(): Breaker;
  storm(): Storm | null;
  incidents(): readonly Incident[];
  /** Closes the breaker, once that was written down. */
  resetBreaker(): Proposal;
}

interface Alerts {
  breaker: Breaker;
  storm: Storm | null;
  incidents: readonly Incident[];
}

const BREAKER = "warden.breaker";
/** The fact that keeps the fleet-wide outage. */
export const STORM = "warden.storm";
/** The fact that keeps correlated failures. */
export const INCIDENTS = "warden.incidents";
/** The fact that says since when, and why, everything is paused. */
export const PAUSED = "warden.paused";
/** Nodes that go dark as one are not all seen in one walk. */
const WALKS_OF_INCIDENT = 2;
/** How long a storm or incident may move on before it is written down again. */
const REWRITE_MS = MINUTE_MS;

/** The situation as the books remember it. */
export function createSituation(ward: Ward, obstacles: ObstacleCache): Situation {
  const { books, rules, clock, client } = ward;
  const { casebook } = books;
  const real: Alerts = {
    breaker: parsed<Breaker>(casebook.fact(BREAKER)) ?? CLOSED_BREAKER,
    storm: parsed<Storm>(casebook.fact(STORM)),
    incidents: parsed<readonly Incident[]>(casebook.fact(INCIDENTS)) ?? [],
  };
  // Dry runs have alarms of their own, which nobody has to reset: they begin anew with the process.
  const shadowed: Alerts = { breaker: CLOSED_BREAKER, storm: null, incidents: [] };
  /** Losses after this instant are new to the breaker. Those of the last hour are counted again after a restart. */
  let lossesCountedTo = books.now() - rules.safety.breaker.withinMs;
  const written = new Map<string, { at: EpochMs; text: string }>();

  const survey = (shadow: boolean): Survey =>
    surveyFleet(ward.view!.snapshot.fleet, casebook, activePolicies(ward), { shadow, by: rules.safety.correlated.by });

  const withinMs = () =>
    Math.max(rules.safety.correlated.withinMs, WALKS_OF_INCIDENT * (ward.view?.plan.nodes?.pacedMs ?? 0));

  function advance(alerts: Alerts, now: EpochMs, seen: Survey, begun: readonly NodeId[]): void {
    const { safety } = rules;
    const limits = nodeLimits(safety, seen.nodes);
    const { withinMs: breakerWithin } = safety.breaker;
    alerts.breaker = countFirings(alerts.breaker, begun, { now, withinMs: breakerWithin, limit: limits.breaker });
    const unhealthy = { nodes: seen.unhealthy, limit: limits.maxUnhealthy };
    alerts.storm = weather(alerts.storm, unhealthy, now, safety.stormCooldownMs);
    alerts.incidents = incidentsNow(alerts.incidents, seen.bad, safety, { now, withinMs: withinMs() });
  }

  /** Ends move on at every look: that alone is no news worth a write a second. */
  function writeDown(key: string, value: unknown, isNews: boolean): void {
    const text = JSON.stringify(value);
    const last = written.get(key) ?? { at: Number.NEGATIVE_INFINITY, text: casebook.fact(key) ?? "null" };
    if (text === last.text || (!isNews && books.now() - last.at < REWRITE_MS)) return;
    written.set(key, { at: books.now(), text });
    books.record([{ kind: "fact", key, value: text }]);
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
    update(begun) {
      const now = books.now();
      const before = { ...real };
      const policies = activePolicies(ward);
      const begunIn = (modes: (mode: string) => boolean) =>
        policies.flatMap(({ policy, mode }) => (modes(mode) ? (begun.get(policy.rule.name) ?? []) : []));
      const seen = survey(false);
      const newlyLost = seen.lost.flatMap(({ node, unlistedAt }) => (unlistedAt! > lossesCountedTo ? [node] : []));
      lossesCountedTo = now;
      advance(real, now, seen, [...begunIn((mode) => mode !== "dry_run"), ...newlyLost]);
      advance(
        shadowed,
        now,
        survey(true),
        begunIn(() => true),
      );
      // A breaker of dry runs closes by itself, once nothing fired for its time.
      const { open } = shadowed.breaker;
      if (open !== null && now - open.openedAt > rules.safety.breaker.withinMs) shadowed.breaker = CLOSED_BREAKER;
      writeDown(BREAKER, real.breaker, true);
      writeDown(STORM, real.storm, (real.storm === null) !== (before.storm === null));
      writeDown(INCIDENTS, real.incidents, real.incidents.length !== before.incidents.length);
    },
    facts(shadow, sight) {
      const now = books.now();
      const seen = survey(shadow);
      const alerts = shadow ? shadowed : real;
      const { perMs } = rules.safety.maxActions;
      const assumed = shadow ? [] : assumedActions(books.beganAt(), rules.safety, now);
      return {
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
        incidentWithinMs: withinMs(),
        inFlight: inFlight(shadow),
        actedAt: [...assumed, ...actedSince(casebook.actions(), shadow, now - Math.min(perMs, DAY_MS))],
        assumedActions: assumed.length,
        closed: closedNow(),
      };
    },
    breaker: () => real.breaker,
    storm: () => real.storm,
    incidents: () => real.incidents,
    resetBreaker() {
      const text = JSON.stringify(CLOSED_BREAKER);
      return {
        changes: [{ kind: "fact", key: BREAKER, value: text }],
        adopt() {
          real.breaker = CLOSED_BREAKER;
          written.set(BREAKER, { at: books.now(), text });
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
