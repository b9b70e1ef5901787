import type { Race } from "../faults/step-races.ts";

/** A deliberate fault of the daemon, as edits to its source. */
export interface Mutation {
  readonly name: string;
  /** `find` must occur in the file exactly once. */
  readonly edits: readonly { readonly file: string; readonly find: string; readonly replace: string }[];
  /** Tried in order until an invariant is violated. Numbers of commits if there is a race. */
  readonly seeds: readonly number[];
  /** Runs this race instead of worlds. */
  readonly race?: Race;
  readonly nodes: number;
  readonly days: number;
  /** Hours to run of each seed. Defaults to all. Safety invariants are violated before the quiet period. */
  readonly hours?: number;
}

const SEEDS_MAX = 24;

/** Starts with the seed that caught the fault last. A change of the random input may require another seed. */
const from = (first: number): readonly number[] => [
  first,
  ...Array.from({ length: SEEDS_MAX }, (_, index) => index + 1).filter((seed) => seed !== first),
];
const safety = (seed: number) => ({ nodes: 60, days: 2, hours: 36, seeds: from(seed) });
const liveness = (seed: number) => ({ nodes: 60, days: 1, seeds: from(seed) });
const race = (name: Race, commit: number) => ({ ...liveness(commit), race: name });

/** Deliberate faults, each of which an invariant must catch. */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: "no re-read before acting",
    edits: [
      {
        file: "src/remediation/execution/executor.ts",
        find: "const problem = await readNodeNow(context, intent, noNewSteps);",
        replace: "const problem = noNewSteps.aborted ? await readNodeNow(context, intent, noNewSteps) : null;",
      },
    ],
    ...safety(1),
  },
  {
    name: "POST retried",
    edits: [
      {
        file: "src/api-client/client.ts",
        find: "          return resultOf(call, await sendCall(deps, call, permitted.value, sendSignal));",
        replace: `          let attempt = await sendCall(deps, call, permitted.value, sendSignal);
          if (attempt.kind === "failed" && !attempt.isUnsent) attempt = await attemptCall(deps, call, "action", sendSignal);
          return resultOf(call, attempt);`,
      },
    ],
    ...safety(2),
  },
  {
    name: "breaker in memory only",
    edits: [
      {
        file: "src/remediation/evaluation/fleet-health.ts",
        find: "      ...this.#changedFact(BREAKER_FACT, this.#real.breaker),\n",
        replace: "",
      },
    ],
    ...safety(21),
  },
  {
    name: "nodes that failed together are not held",
    edits: [
      {
        file: "src/policy/guards/correlated-failure.ts",
        find: "incidents.find(({ nodes }) => nodes.has(node)) ?? null;",
        replace: "incidents.find(({ nodes }) => nodes.has(node) && nodes.size === 0) ?? null;",
      },
    ],
    ...safety(1),
  },
  {
    name: "incidents in memory only",
    edits: [
      {
        file: "src/remediation/evaluation/fleet-health.ts",
        find: "      ...this.#changedFact(INCIDENTS_FACT, this.#incidents.row()),\n",
        replace: "",
      },
    ],
    ...safety(1),
  },
  {
    name: "timer running on unknown",
    edits: [
      {
        file: "src/policy/timer.ts",
        find: "  const { verdict, newest, now } = observation;",
        replace: `  if (observation.verdict === "unknown") observation = { ...observation, verdict: "true" };
  const { verdict, newest, now } = observation;`,
      },
    ],
    ...safety(4),
  },
  {
    name: "percent rounded up",
    edits: [
      {
        file: "src/policy/guards/safety-limits.ts",
        find: "Math.floor(share * nodes + 1e-9)",
        replace: "Math.ceil(share * nodes - 1e-9)",
      },
    ],
    ...safety(1),
  },
  {
    name: "gone after one walk",
    edits: [
      {
        file: "src/inventory/absence.ts",
        find: "const ABSENCE_POINTS_MAX = 10;",
        replace: "const ABSENCE_POINTS_MAX = 1;",
      },
    ],
    ...safety(3),
  },
  {
    name: "lost nodes not counted",
    edits: [
      {
        file: "src/policy/fleet-counts.ts",
        find: `if (episode.state === "suspended") return isLost(episode);`,
        replace: `if (episode.state === "suspended") return false;`,
      },
    ],
    ...safety(3),
  },
  {
    name: "canary never released",
    edits: [
      {
        file: "src/remediation/policy-set.ts",
        find: "proven: this.#records.fact(canaryFactKey(name)) === policy.fingerprint",
        replace: "proven: false",
      },
      {
        file: "src/policy/decision.ts",
        find: ".openEpisodes()",
        replace: ".openEpisodes()\n    .concat([...records.closedEpisodes()])",
      },
      {
        file: "src/policy/decision.ts",
        find: "candidates.find(canProceed) ??",
        replace: "candidates[0] ??",
      },
    ],
    ...liveness(3),
  },
  {
    name: "approval never expiring",
    edits: [
      {
        file: "src/remediation/evaluation/decision-input.ts",
        find: "if (remediationState.now() - since < approvalTtlMs) return null;",
        replace: "if (remediationState.now() - since < approvalTtlMs * 1_000) return null;",
      },
    ],
    ...safety(4),
  },
  {
    name: "month not counted before the call",
    edits: [
      {
        file: "src/api-client/rate-limiter.ts",
        find: "const counted = this.#month.add(1);",
        replace: "const counted = Promise.resolve();",
      },
      {
        file: "src/api-client/rate-limiter.ts",
        find: `    if (outcome.kind === "unused") this.#month.takeBack();`,
        replace: `    if (outcome.kind !== "unused") void this.#month.add(1);`,
      },
    ],
    ...safety(1),
  },
  {
    name: "a restart forgets Retry-After",
    edits: [
      {
        file: "src/api-client/rate-limiter.ts",
        find: 'if (fact !== "null") continueHolds(ledger, parseJsonObject(fact),',
        replace: 'if (fact !== "null") storedHoldsOf(ledger,',
      },
    ],
    ...safety(6),
  },
  {
    name: "a node that a step left down is forgotten",
    edits: [
      {
        file: "src/remediation/execution/step-verification.ts",
        find: "recordStepResult(observed, seen,",
        replace: "recordStepResult(observed && episode, seen,",
      },
    ],
    ...race("limit", 9),
  },
  {
    name: "one wrong Date sets the service's clock",
    edits: [
      {
        file: "src/api-client/service-clock.ts",
        find: "    this.#unconfirmed = { ...shown, observedAt: [next], shownAt: receivedAt, isLatest: true };",
        replace: "    this.#offsets.push({ ...shown, after: this.#lastObservedAt, from: next, shownAt: receivedAt });",
      },
    ],
    ...safety(1),
  },
  {
    name: "an empty list removes all nodes",
    edits: [
      {
        file: "src/inventory/walk-completeness.ts",
        find: "const isShrunk = shown < shownMin * this.#expectedNodes - 1e-9;",
        replace: "const isShrunk = shown < shownMin * 0;",
      },
    ],
    ...safety(1),
  },
  {
    name: "one walk raises the baseline",
    edits: [
      {
        file: "src/remediation/evaluation/inventory-trust.ts",
        find: "Math.min(nodes, earlier)",
        replace: "Math.max(nodes, 0 * earlier)",
      },
    ],
    ...safety(1),
  },
  {
    name: "a suspension of the machine is not noticed",
    edits: [
      {
        file: "src/remediation/execution/executor.ts",
        find: "Math.max(clock.monotonic() - readAt, clock.now() - readAtEpochMs)",
        replace: "Math.max(clock.monotonic() - readAt, 0 * readAtEpochMs)",
      },
      {
        file: "src/remediation/state/journal-clock.ts",
        find: "this.#wallChanges = [...this.#recentWallChanges(), monotonic];",
        replace: "this.#wallOffset = wallOffset;",
      },
    ],
    ...safety(1),
  },
  {
    name: "a step follows five 429s",
    edits: [
      {
        file: "src/policy/episodes/episode.ts",
        find: "  return endSteps(next, spec, now);",
        replace: `  return next.quarantine === null ? endSteps(next, spec, now) : transition(next, "quarantined", now);`,
      },
    ],
    ...race("limit", 13),
  },
  {
    name: "a step ends by data from before a suspension",
    edits: [
      {
        file: "src/remediation/execution/step-verification.ts",
        find: "(at ?? Number.NaN) > suspendedAt &&",
        replace: "(at ?? Number.NaN) !== suspendedAt &&",
      },
      {
        file: "src/remediation/execution/episode-tracker.ts",
        find: "observedAt <= remediationState.clock.suspendedAt()",
        replace: "observedAt <= Number.NEGATIVE_INFINITY",
      },
    ],
    ...race("suspend", 9),
  },
  {
    name: "a withdrawn action is journaled as being sent",
    edits: [
      {
        file: "src/remediation/execution/executor.ts",
        find: `remediationState.records.action(intent.id)?.state === "intended"`,
        replace: "remediationState.records.action(intent.id) !== null",
      },
    ],
    ...race("accept", 11),
  },
];
