import { expect, test } from "vitest";
import { shareFairly } from "../../src/scheduling/max-min-fairness.ts";

type Name = "a" | "b" | "c";
type Bound = "all" | "first";

const demand = (name: Name, wanted: number, weight = 1) => ({ name, wanted, weight });
/** Creates constraints on `a` alone and on all demands together. */
const constraints = (all: number, first = Number.POSITIVE_INFINITY) => [
  { bound: "first" as Bound, capacity: first, appliesTo: (name: Name) => name === "a" },
  { bound: "all" as Bound, capacity: all, appliesTo: () => true },
];
const given = (grants: ReturnType<typeof shareFairly<Name, Bound>>) =>
  Object.fromEntries([...grants].map(([name, grant]) => [name, [grant.given, grant.boundBy]]));

test("a demand below its share leaves the rest to the others", () => {
  const demands = [demand("a", 1), demand("b", 9), demand("c", 9, 3)];
  expect(given(shareFairly(demands, constraints(9)))).toEqual({ a: [1, null], b: [2, "all"], c: [6, "all"] });
});

test("a demand with a constraint of its own leaves the rest to the others", () => {
  const demands = [demand("a", 9), demand("b", 9), demand("c", 4)];
  expect(given(shareFairly(demands, constraints(12, 2)))).toEqual({ a: [2, "first"], b: [6, "all"], c: [4, null] });
});

test("a demand that gets all that it wants is not bound, even if nothing is left", () => {
  expect(given(shareFairly([demand("a", 1), demand("b", 1)], constraints(2)))).toEqual({ a: [1, null], b: [1, null] });
  expect(given(shareFairly([demand("a", 1), demand("b", 3)], constraints(2)))).toEqual({ a: [1, null], b: [1, "all"] });
});

test("a demand for nothing is met, and without capacity nothing is given", () => {
  expect(given(shareFairly([demand("a", 0), demand("b", 2)], constraints(0)))).toEqual({ a: [0, null], b: [0, "all"] });
  expect(given(shareFairly([demand("a", 0), demand("b", 2)], constraints(5)))).toEqual({ a: [0, null], b: [2, null] });
});
