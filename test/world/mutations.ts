/** A deliberate fault of the daemon, as edits of its source. */
export interface Mutation {
  readonly name: string;
  /** `find` must occur in the file exactly once. */
  readonly edits: readonly { readonly file: string; readonly find: string; readonly replace: string }[];
  /** Tried one after the other until a law is broken. */
  readonly seeds: readonly number[];
  readonly nodes: number;
  readonly days: number;
  /** Hours of each seed that are run; absent: all. What breaks a law of safety does so before the quiet end. */
  readonly hours?: number;
}

const SEEDS_MAX = 24;

/** The seed that caught the fault when it was last looked at, then all others: another input may need another one. */
const from = (first: number): readonly number[] => [
  first,
  ...Array.from({ length: SEEDS_MAX }, (_, index) => index + 1).filter((seed) => seed !== first),
];
const safety = { nodes: 60, days: 2, hours: 36 } as const;
const liveness = { nodes: 60, days: 1 } as const;

/** Ten faults, each of which the laws must catch. */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: "no re-read before acting",
    edits: [
      {
        file: "src/engine/remediate.ts",
        find: "const problem = await readAfresh(ward, intent, stopping);",
        replace: "const problem = stopping.aborted ? await readAfresh(ward, intent, stopping) : null;",
      },
    ],
    ...{ ...safety, seeds: from(1) },
  },
  {
    name: "POST retried",
    edits: [
      {
        file: "src/service/client.ts",
        find: `      const tried = await attempt(call, "action", signal, onSending);`,
        replace: `      let tried = await attempt(call, "action", signal, onSending);
      if (tried.kind === "failed" && !tried.isUnsent) tried = await attempt(call, "action", signal);`,
      },
    ],
    ...{ ...safety, seeds: from(5) },
  },
  {
    name: "breaker in memory only",
    edits: [{ file: "src/engine/situation.ts", find: "...changed(BREAKER, real.breaker), ", replace: "" }],
    ...{ ...safety, seeds: from(21) },
  },
  {
    name: "timer running on unknown",
    edits: [
      {
        file: "src/policy/timer.ts",
        find: "  const { verdict, now } = observation;",
        replace: `  const { now } = observation;
  const verdict = observation.verdict === "unknown" ? "true" : observation.verdict;`,
      },
    ],
    ...{ ...safety, seeds: from(1) },
  },
  {
    name: "percent rounded up",
    edits: [
      {
        file: "src/policy/limits.ts",
        find: "Math.floor(share * nodes + 1e-9)",
        replace: "Math.ceil(share * nodes - 1e-9)",
      },
    ],
    ...{ ...safety, seeds: from(5) },
  },
  {
    name: "gone after one walk",
    edits: [{ file: "src/engine/listing.ts", find: "const ABSENCE_MAX = 10;", replace: "const ABSENCE_MAX = 1;" }],
    ...{ ...safety, seeds: from(2) },
  },
  {
    name: "lost nodes not counted",
    edits: [
      {
        file: "src/policy/facts.ts",
        find: `if (episode.state === "suspended") return isLost(episode);`,
        replace: `if (episode.state === "suspended") return false;`,
      },
    ],
    ...{ ...safety, seeds: from(5) },
  },
  {
    name: "canary never released",
    edits: [
      {
        file: "src/engine/ward.ts",
        find: "proven: books.casebook.fact(provenFact(name)) === policy.fingerprint",
        replace: "proven: false",
      },
      {
        file: "src/policy/canary.ts",
        find: ".openEpisodes()",
        replace: ".openEpisodes()\n    .concat([...casebook.closed()])",
      },
      { file: "src/policy/canary.ts", find: "tried.find(canProceed) ?? null", replace: "tried[0] ?? null" },
    ],
    ...{ ...liveness, seeds: from(3) },
  },
  {
    name: "approval never expiring",
    edits: [
      {
        file: "src/engine/candidates.ts",
        find: "if (books.now() - (approvedAt ?? createdAt) < approvalTtlMs) return null;",
        replace: "if (books.now() - (approvedAt ?? createdAt) < approvalTtlMs * 1_000) return null;",
      },
    ],
    ...{ ...safety, seeds: from(4) },
  },
  {
    name: "month not counted before the call",
    edits: [
      { file: "src/service/permits.ts", find: "    count(1);\n", replace: "" },
      {
        file: "src/service/permits.ts",
        find: `      if (outcome.kind === "unused") uncounted--;`,
        replace: `      if (outcome.kind !== "unused") count(1);`,
      },
    ],
    ...{ ...safety, seeds: from(1) },
  },
];
