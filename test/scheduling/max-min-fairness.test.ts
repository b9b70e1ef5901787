import { expect, test } from "vitest";
import { shareFairly } from "../../src/scheduling/max-min-fairness.ts";

type Name = "a" | "b" | "c";
type Bound = "all" | "first";

const demand = (name: Name, wanted: number, weight = 1) => ({ name, wanted, weight });
/** What `a`, or all of them, may have together. */
const constraints = (all: number, first = Number.POSITIVE_INFINITY) => [
  { bound: "first" as Bound, capacity: first, holds: (name: Name) => name === "a" },
  { bound: "all" as Bound, capacity: all, holds: () => true },
];
const given = (grants: ReturnType<typeof shareFairly<Name, Bound>>) =>
  Object.fromEntries([...grants].map(([name, grant]) => [name, [grant.given, grant.boundBy]]));

test("who needs less than its share leaves the rest to the others", () => {
  const demands = [demand("a", 1), demand("b", 9), demand("c", 9, 3)];
  expect(given(shareFairly(demands, constraints(9)))).toEqual({ a: [1, null], b: [2, "all"], c: [6, "all"] });
});

test("who is bound by a constraint of its own leaves the rest to the others", () => {
  const demands = [demand("a", 9), demand("b", 9), demand("c", 4)];
  expect(given(shareFairly(demands, constraints(12, 2)))).toEqual({ a: [2, "first"], b: [6, "all"], c: [4, null] });
});

test("who gets all that it wants is bound by nothing, also where nothing is left", () => {
  expect(given(shareFairly([demand("a", 1), demand("b", 1)], constraints(2)))).toEqual({ a: [1, null], b: [1, null] });
  expect(given(shareFairly([demand("a", 1), demand("b", 3)], constraints(2)))).toEqual({ a: [1, null], b: [1, "all"] });
});

test("who wants nothing has all that it wants, and of nothing there is nothing to give", () => {
  expect(given(shareFairly([demand("a", 0), demand("b", 2)], constraints(0)))).toEqual({ a: [0, null], b: [0, "all"] });
  expect(given(shareFairly([demand("a", 0), demand("b", 2)], constraints(5)))).toEqual({ a: [0, null], b: [2, null] });
});
