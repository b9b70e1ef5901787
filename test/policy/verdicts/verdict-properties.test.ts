import { Environment } from "@marcbachmann/cel-js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileExpression, type Expression } from "../../../src/policy/cel/expression.ts";
import { FIELDS } from "../../../src/policy/cel/fields.ts";
import { evaluatePolicy } from "../../../src/policy/evaluation.ts";
import { propertyRuns } from "../../harness/run-length.ts";
import { scopeOf } from "../../metrics/snapshot-fixtures.ts";
import { type RandomExpression, randomConditions } from "../cel/arbitrary-expression.ts";
import { referenceReading } from "../cel/naive-evaluation.ts";
import { MAX_AGES, NOW, type SampledFleet, sampledFleets, snapshotOf } from "./arbitrary-snapshot.ts";

function mustCompileText({ text }: RandomExpression<boolean>): Expression {
  const expression = compileExpression(text);
  if (!expression.ok) throw new Error(`${text}: ${expression.error[0]?.message}`);
  return expression.value;
}

interface RandomPolicy {
  readonly match: RandomExpression<boolean> | null;
  readonly when: RandomExpression<boolean>;
}

const policies: fc.Arbitrary<RandomPolicy> = fc.record({
  match: fc.option(randomConditions, { freq: 2 }),
  when: randomConditions,
});

/** Returns the daemon's verdict on the first node of a world. */
function verdictOf({ match, when }: RandomPolicy, sampledFleet: SampledFleet) {
  const { skewMs } = sampledFleet;
  const snapshot = snapshotOf(sampledFleet);
  const data = scopeOf(snapshot, (at) => (skewMs === null ? null : skewMs + at));
  const policy = { match: match === null ? null : mustCompileText(match), when: mustCompileText(when) };
  const input = { data, maxAgeOf: (source: string) => MAX_AGES[source]!, now: NOW };
  return evaluatePolicy(policy, snapshot.fleet.ids.indexOf("node_0"), input).verdict;
}

/** Returns the expected verdict, if all named fields are known, without the daemon's code. */
function referenceVerdict({ match, when }: RandomPolicy, sampledFleet: SampledFleet): "true" | "false" | "unknown" {
  const known = referenceReading(sampledFleet, sampledFleet.nodes[0]!);
  const parts = [match === null ? true : match.value(known), when.value(known)];
  return parts.includes(false) ? "false" : parts.includes(null) ? "unknown" : "true";
}

test("over arbitrary worlds a verdict is that of a plain evaluation: known if known and fresh data determine it", () => {
  const seen = { true: 0, false: 0, unknown: 0 };
  fc.assert(
    fc.property(policies, sampledFleets(true), (spec, sampledFleet) => {
      const verdict = verdictOf(spec, sampledFleet);
      seen[verdict] += 1;
      expect(verdict).toBe(referenceVerdict(spec, sampledFleet));
    }),
    propertyRuns(4_000),
  );
  // None of the three is so rare that the law says nothing about it.
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(30);
});

test("with less data the verdict is the same or unknown", () => {
  const seen = { true: 0, false: 0, unknown: 0 };
  // Without one of its nodes, the counts and medians of a region are those of its other nodes.
  const own = policies.filter(
    ({ match, when }) => ![...(match?.fields ?? []), ...when.fields].some((name) => /^(fleet|region)/.test(name)),
  );
  fc.assert(
    fc.property(own, sampledFleets(false), sampledFleets(true), (spec, whole, odd) => {
      const verdict = verdictOf(spec, applyGaps(whole, odd));
      seen[verdict] += 1;
      if (verdict !== "unknown") expect(verdict).toBe(referenceVerdict(spec, whole));
    }),
    propertyRuns(4_000),
  );
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(30);
});

/**
 * The whole world as seen through the holes of an odd one: what that lacks is lacking, what is old there is old here.
 */
function applyGaps(whole: SampledFleet, odd: SampledFleet): SampledFleet {
  const nodes = whole.nodes.map((node, index) => {
    const hole = odd.nodes[index] ?? odd.nodes[0]!;
    const there = Object.entries(node).filter(([key]) => key in hole);
    return {
      ...(Object.fromEntries(there) as unknown as typeof node),
      ...(hole.status === "unknown" ? { status: hole.status } : {}),
      ...(hole.listedAt! < NOW - MAX_AGES.nodes! ? { listedAt: hole.listedAt! } : {}),
      ...(hole.detailedAt !== undefined && hole.detailedAt < NOW - MAX_AGES.details!
        ? { detailedAt: hole.detailedAt }
        : {}),
    };
  });
  const sessions =
    odd.sessions === null
      ? null
      : { ...whole.sessions!, observedFrom: odd.sessions.observedFrom, failedListed: odd.sessions.failedListed };
  return { ...whole, nodes, sessions, usageKnown: odd.usageKnown, skewMs: odd.skewMs };
}

test("an expression reads the fields it names and no other", () => {
  fc.assert(
    fc.property(randomConditions, (sentence) => {
      expect(
        mustCompileText(sentence)
          .fields.map(({ name }) => name)
          .toSorted(),
      ).toEqual([...new Set(sentence.fields)].toSorted());
    }),
  );
});

test("an invalid part is rejected at its position anywhere in an expression", () => {
  const wrong = fc.constantFrom(
    "node.nope == 1",
    'node.status == "nope"',
    "node.name == 1",
    "has(node.name)",
    "1 == 1",
  );
  fc.assert(
    fc.property(randomConditions, wrong, randomConditions, (before, part, after) => {
      const head = `${before.text} || (`;
      const answer = compileExpression(`${head}${part}) && ${after.text}`);
      const within = part.indexOf('"nope"');
      expect(answer.ok ? [] : answer.error.map(({ offset }) => offset)).toEqual([head.length + Math.max(within, 0)]);
    }),
  );
});

describe("CEL's own evaluator", () => {
  const environment = new Environment({ unlistedVariablesAreDyn: true });
  environment.registerOperator("int == double", (a, b) => Number(a) === Number(b));
  for (const [left, right] of [
    ["int", "double"],
    ["double", "int"],
  ]) {
    environment.registerOperator(`${left} + ${right}: double`, (a, b) => Number(a) + Number(b));
    environment.registerOperator(`${left} - ${right}: double`, (a, b) => Number(a) - Number(b));
    environment.registerOperator(`${left} * ${right}: double`, (a, b) => Number(a) * Number(b));
  }
  environment.registerFunction("ratio(dyn, dyn): double", (a: number, b: number) => Number(a) / Number(b));

  /** The fields as CEL wants them: BigInt for int, Date for timestamp, and objects within objects. */
  function contextOf(known: Readonly<Record<string, string | number>>): Record<string, unknown> {
    const context: Record<string, unknown> = {};
    for (const { name, type } of FIELDS) {
      const value = known[name];
      if (value === undefined) continue;
      const path = name.split(".");
      let place = context;
      for (const segment of path.slice(0, -1)) {
        place[segment] ??= {};
        place = place[segment] as Record<string, unknown>;
      }
      place[path.at(-1)!] = type === "int" ? BigInt(value) : type === "timestamp" ? new Date(value) : value;
    }
    return context;
  }

  test("agrees if every number has a value", () => {
    let compared = 0;
    fc.assert(
      fc.property(randomConditions, sampledFleets(false), (sentence, sampledFleet) => {
        const known = referenceReading(sampledFleet, sampledFleet.nodes[0]!);
        const { fields, evaluate } = mustCompileText(sentence);
        if (!fields.every(({ name }) => name in known)) return;
        const value = evaluate(fields.map(({ name }) => known[name]!));
        if (value === null) return;
        compared += 1;
        expect(environment.evaluate(sentence.text, contextOf(known))).toBe(value);
      }),
      propertyRuns(1_500),
    );
    expect(compared).toBeGreaterThan(100);
  });
});
