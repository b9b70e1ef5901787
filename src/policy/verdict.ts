import type { DurationMs } from "../base/duration.ts";
import type { Collector } from "../model/snapshot.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { Expression } from "./expression.ts";
import type { Field, FieldName } from "./field.ts";
import type { Absence, Subject } from "./scope.ts";
import type { Value } from "./term.ts";

/** Three values: what is not known for sure is neither true nor false. */
export type Verdict = "true" | "false" | "unknown";

/** Something that kept a verdict from being known. */
export interface Unknown {
  /** Null: the expression itself: a ratio by 0, or a number too large to be one. */
  readonly field: FieldName | null;
  /** `stale`: older than its max_age; `error`: all fields are known, and what is computed from them is not. */
  readonly why: Absence | "stale" | "error";
}

/** What an expression says of a node, and on what grounds. */
export interface Answer {
  readonly verdict: Verdict;
  /** All of them, in the order of the text; none: the verdict is known. */
  readonly unknowns: readonly Unknown[];
  /** When the oldest datum that was read was observed, a stale one too; where there was none, the moment of asking. */
  readonly at: MonotonicMs;
  /** The same of the youngest. */
  readonly newest: MonotonicMs;
  /** Everything that was read and is there, by field; timestamps in ISO 8601. Worked out when it is called. */
  fields(): Readonly<Record<string, Value>>;
}

/** What a policy says of a node. */
export interface Judgement extends Answer {
  /** Whether the policy is about the node at all; null: not known. */
  readonly matched: boolean | null;
}

/** How old what a collector brings may be. */
export type MaxAgeOf = (source: Collector) => DurationMs;

/**
 * Judges a node by a policy. A node that `match` rules out is `false`, and `when` is not read: what it names need not
 * be known. In every other case all fields that were named must be known and fresh, whatever the values of the others:
 * a missing one makes the verdict unknown where CEL would have skipped it.
 *
 * `now` is best the same for all nodes that are judged together.
 */
export function judge(
  policy: { readonly match: Expression | null; readonly when: Expression },
  subject: Subject,
  maxAgeOf: MaxAgeOf,
  now: MonotonicMs,
): Judgement {
  if (policy.match === null) return { ...holds(policy.when, subject, maxAgeOf, now), matched: true };
  const match = holds(policy.match, subject, maxAgeOf, now);
  if (match.verdict !== "true") return { ...match, matched: match.verdict === "false" ? false : null };
  const when = holds(policy.when, subject, maxAgeOf, now);
  return {
    verdict: when.verdict,
    unknowns: when.unknowns,
    at: Math.min(match.at, when.at),
    newest: Math.max(match.newest, when.newest),
    fields: () => ({ ...match.fields(), ...when.fields() }),
    matched: true,
  };
}

/** Whether an expression holds of a node: true or false only if every field that it names is known and fresh. */
export function holds(expression: Expression, subject: Subject, maxAgeOf: MaxAgeOf, now: MonotonicMs): Answer {
  const values: Value[] = [];
  const unknowns: Unknown[] = [];
  let at = Number.POSITIVE_INFINITY;
  let newest = Number.NEGATIVE_INFINITY;
  for (const field of expression.fields) {
    const freshFrom = now - maxAgeOf(field.source);
    const datum = subject.read(field, freshFrom);
    if (typeof datum === "string") {
      unknowns.push({ field: field.name, why: datum });
      continue;
    }
    at = Math.min(at, datum.at);
    newest = Math.max(newest, datum.at);
    // Said this way round, an age that is no number is stale as well.
    if (datum.at >= freshFrom) values.push(datum.value);
    else unknowns.push({ field: field.name, why: "stale" });
  }
  const known = unknowns.length === 0 ? expression.evaluate(values) : null;
  if (known === null && unknowns.length === 0) unknowns.push({ field: null, why: "error" });
  return {
    verdict: known === null ? "unknown" : known ? "true" : "false",
    unknowns,
    at: at === Number.POSITIVE_INFINITY ? now : at,
    newest: newest === Number.NEGATIVE_INFINITY ? now : newest,
    fields: () => evidence(expression.fields, subject, maxAgeOf, now),
  };
}

function evidence(fields: readonly Field[], subject: Subject, maxAgeOf: MaxAgeOf, now: MonotonicMs) {
  const read: Record<string, Value> = {};
  for (const field of fields) {
    const datum = subject.read(field, now - maxAgeOf(field.source));
    if (typeof datum === "string") continue;
    read[field.name] = field.type === "timestamp" ? new Date(Number(datum.value)).toISOString() : datum.value;
  }
  return read;
}
