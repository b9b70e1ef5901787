import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Plan } from "../scheduling/planner.ts";
import type { Journal } from "../model/remediation/journal.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Candidate, nextStep } from "../policy/candidate.ts";
import { type Facts, isShadow } from "../policy/facts.ts";
import { createAlarms } from "./status/fleet-alerts.ts";
import { awaitedDetails, thresholdsIn } from "./evaluation/detail-demand.ts";
import { candidateOf, isTimely } from "./evaluation/candidates.ts";
import { createDeciding, isWaiting, sendNotice } from "./evaluation/action-planner.ts";
import { createEpisodeGauge } from "./status/episode-gauge.ts";
import type { Orders, WardenView } from "./status/views.ts";
import { createFollowing } from "./execution/episode-tracker.ts";
import { createForeignActions } from "./external-actions.ts";
import { createHoldGauges } from "./status/hold-gauges.ts";
import { createIdentities } from "./node-identity.ts";
import { createJudging } from "./evaluation/rule-evaluator.ts";
import { ASK_MS, createObstacleCache } from "./evaluation/external-blockers.ts";
import { createOrders } from "./operator-commands.ts";
import { beginCounters, createPortrait, removeGauges, showPortrait } from "./status/status-view.ts";
import { recover } from "./crash-recovery.ts";
import { pretend, type Redecide, remediate } from "./execution/executor.ts";
import { adoptService } from "./service-identity.ts";
import { createSightKeeper, type Sight } from "./evaluation/inventory-trust.ts";
import { createSituation } from "./evaluation/fleet-health.ts";
import { endGivenUp, resumeTelling } from "./execution/episode-transitions.ts";
import { startVerifying } from "./execution/verification-reads.ts";
import { activePolicies, createWard, policyNamed, type WardParts } from "./context.ts";

/** Watches over the nodes: judges, decides, acts and verifies, snapshot by snapshot. */
export interface Warden {
  /** Takes in what is seen now. Returns at once; rounds follow one another. */
  see(snapshot: Snapshot, plan: Plan): void;
  readonly view: WardenView;
  readonly orders: Orders;
  /**
   * Ends: nothing new begins; a POST that is under way may reach its answer within {@link POST_GRACE_MS}, and is then
   * given up, in doubt.
   */
  stop(): Promise<void>;
}

/** What a warden stands on. */
export interface WardenParts extends WardParts {
  readonly journal: Journal;
}

/** SIGTERM is to end in 10 s. */
const POST_GRACE_MS: DurationMs = 7 * SECOND_MS;
/** The journal forgets what ended so long ago. */
const KEPT_MS: DurationMs = 90 * DAY_MS;
const PRUNE_EVERY_MS: DurationMs = 10 * MINUTE_MS;
const MEMORY_MS: DurationMs = 30 * DAY_MS;

/** Starts a warden: first settles what the last one left. */
export function startWarden(parts: WardenParts): Warden {
  const ward = createWard(parts);
  adoptService(ward);
  const { books, clock, log } = ward;
  const obstacles = createObstacleCache(ward.obstacles, clock);
  const situation = createSituation(ward, obstacles);
  const keeper = createSightKeeper(books, () => ward.rules.safety, ward.inventory);
  const judging = createJudging(ward);
  const foreign = createForeignActions(ward);
  const following = createFollowing(ward);
  const identities = createIdentities(ward);
  const deciding = createDeciding(ward);
  const alarms = createAlarms(ward, situation);
  const episodes = createEpisodeGauge(ward);
  const holds = createHoldGauges(ward);
  const stopping = new AbortController();
  const cutting = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let isWanted = false;
  let isRunning = false;
  let prunedAt = Number.NEGATIVE_INFINITY;

  ward.inventory.setThresholds(thresholdsIn(ward.policies));
  recover(ward);
  beginCounters(ward);
  resumeTelling(ward);
  const view = createPortrait({ ward, situation, keeper, journal: parts.journal, sight: sightNow });
  const orders = createOrders({ ward, situation, sight: keeper, onOrder: want });
  const verifying = startVerifying(ward, stopping.signal);

  function sightNow(): Sight {
    if (ward.view === null)
      return { blockers: [{ reason: "warming_up", detail: "nothing was seen yet" }], isBroken: false };
    const { snapshot, plan } = ward.view;
    const sight = keeper.look(snapshot.fleet, {
      at: clock.monotonic(),
      freshMs: plan.nodes?.freshMs ?? 0,
      serviceTime: ward.client.serviceTime,
    });
    const dispute = books.clock.problem();
    if (dispute === null) return sight;
    return { ...sight, blockers: [{ reason: "service_clock", detail: dispute }, ...sight.blockers] };
  }

  /** A round is wanted: at once, or as soon as the one under way is over. */
  function want(): void {
    isWanted = true;
    if (isRunning || stopping.signal.aborted) return;
    isRunning = true;
    running = runRounds().finally(() => {
      isRunning = false;
    });
  }

  async function runRounds(): Promise<void> {
    while (isWanted && !stopping.signal.aborted) {
      isWanted = false;
      try {
        await round();
      } catch (error) {
        // A defect of ours must neither end the watching nor act: the round is left, and said with its stack.
        log.error({ err: error }, "a round of the warden broke; no node was touched by it after this");
      }
    }
  }

  async function round(): Promise<void> {
    if (ward.view === null) return;
    books.checkClock(ward.client.serviceTime(clock.monotonic()));
    forgetOldBeliefs();
    // Before the list was seen whole once, a node that is not there is not gone.
    if (ward.view.snapshot.fleet.settledAt === null) {
      showAll();
      return;
    }
    const sight = sightNow();
    if (sight.isBroken) judging.distrust();
    else {
      const replaced = identities.replaced();
      await judging.look(replaced, situation.note);
      foreign.look();
      books.batch(() => {
        following.follow(replaced);
        endGivenUp(ward);
      });
    }
    ward.inventory.awaitDetails(awaitedDetails(ward));
    situation.update(sight.isBroken);
    alarms.tell(sight);
    await askObstacles();
    const acts = await deciding.decideAll((shadow) => situation.facts(shadow, sight));
    showAll();
    if (acts.length > 0) {
      await act(acts);
      showAll();
    }
    prune();
  }

  function forgetOldBeliefs(): void {
    if (ward.credentials !== null && clock.monotonic() >= ward.credentials.until) ward.credentials = null;
    // Whatever could not be written down so far, and the time.
    books.record([]);
  }

  function showAll(): void {
    showPortrait(ward, view);
    episodes.show();
    holds.show();
  }

  async function askObstacles(): Promise<void> {
    const asking = ward.policies.filter(
      ({ rule }) =>
        rule.blockedBy.length > 0 &&
        [...books.casebook.timersOf(rule.name).values()].some(({ state }) => state === "firing"),
    );
    await Promise.all(asking.map((policy) => obstacles.ask(policy, stopping.signal, ASK_MS)));
  }

  async function act(acts: readonly Candidate[]): Promise<void> {
    const facts = new Map<boolean, Facts>();
    for (const candidate of acts) {
      if (stopping.signal.aborted) return;
      const shadow = isShadow(candidate.active);
      const known = facts.get(shadow) ?? situation.facts(shadow, sightNow());
      facts.set(shadow, known);
      if (nextStep(candidate)?.action !== "notify" && !isTimely(ward, candidate)) continue;
      // Each act before it may have left no room for this one.
      const again = redecideWith(known)(candidate);
      if (again?.decision.verdict !== "act") continue;
      facts.delete(shadow);
      if (nextStep(again.candidate)?.action === "notify") sendNotice(ward, again.candidate);
      else if (shadow) pretend(ward, again.candidate);
      else
        await remediate(ward, obstacles, again.candidate, redecide, {
          stopping: stopping.signal,
          cutting: cutting.signal,
        });
    }
  }

  const redecide: Redecide = (candidate) => {
    if (identities.isReplaced(candidate.node.id)) return null;
    // The node has just been read afresh: others may have acted on it since the last walk.
    foreign.look();
    return redecideWith(situation.facts(isShadow(candidate.active), sightNow()))(candidate);
  };

  const redecideWith =
    (facts: Facts): Redecide =>
    ({ active, node, approved }) => {
      const policy = policyNamed(ward, active.policy.rule.name);
      const now = policy === null ? undefined : activePolicies(ward).find((each) => each.policy === policy);
      const candidate = now === undefined ? null : candidateOf(ward, now, node.id);
      if (candidate === null || candidate.episode === null || !isWaiting(ward, candidate.episode)) return null;
      // An approval that was taken up is an intent by now, and stays an approval.
      const same = { ...candidate, approved: candidate.approved || approved };
      return { candidate: same, decision: deciding.decideOne(same, facts) };
    };

  function prune(): void {
    if (clock.monotonic() - prunedAt < PRUNE_EVERY_MS || books.problem() !== null || !books.clock.isSettled()) return;
    prunedAt = clock.monotonic();
    try {
      parts.journal.prune(books.now() - KEPT_MS);
    } catch (error) {
      log.warn({ err: error }, "the journal could not forget what is old");
    }
    books.casebook.prune(books.now() - MEMORY_MS);
  }

  return {
    see(snapshot, plan) {
      ward.view = { snapshot, plan };
      want();
    },
    view,
    orders,
    async stop() {
      stopping.abort();
      const done = new AbortController();
      void clock.sleep(POST_GRACE_MS, done.signal).then(() => cutting.abort());
      await Promise.all([running, verifying]);
      done.abort();
      removeGauges(ward);
      episodes.clear();
      holds.clear();
    },
  };
}
