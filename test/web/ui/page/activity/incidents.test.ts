import { expect, test } from "vitest";
import { decisionView } from "../../../../../src/web/api/row-views.ts";
import { type ActivityLine, decisionLine } from "../../../../../src/web/ui/page/activity/activity-lines.ts";
import {
  groupIncidents,
  isOpenItem,
  latestByNode,
  lineKeys,
} from "../../../../../src/web/ui/page/activity/incidents.ts";
import { heldDecision, SAMPLES_START_MS } from "../../../api/remediation-view-fixture.ts";

/** The line of a hold `second` seconds after the start. */
const hold = (node: string, second: number, reason: "storm" | "in_flight" = "storm", policy = "reboot-offline") =>
  decisionLine(
    decisionView({
      ...heldDecision,
      node,
      policy,
      at: SAMPLES_START_MS + 1_000 * second,
      blockers: [{ reason, detail: `the detail of ${node} at ${second}` }],
    }),
  );

/** Groups lines given oldest first; an incident becomes the list of its nodes. */
const grouped = (...lines: readonly ActivityLine[]) =>
  groupIncidents(lines.toReversed()).map((item) =>
    "lines" in item ? latestByNode(item).map(({ node }) => node) : `${item.node} ${item.policy}`,
  );

test("equal holds of three nodes or more are one incident at the place of the newest", () => {
  expect(
    grouped(hold("a", 1), hold("x", 2, "in_flight"), hold("b", 3), hold("c", 4), hold("y", 5, "in_flight")),
  ).toEqual(["y reboot-offline", ["c", "b", "a"], "x reboot-offline"]);
});

test("holds by another policy, or much later, are not part of an incident", () => {
  expect(grouped(hold("a", 1), hold("b", 2), hold("c", 3, "storm", "other"))).toHaveLength(3);
  expect(grouped(hold("a", 1), hold("b", 2), hold("c", 603))).toHaveLength(3);
  // A node that is held again and again is not an incident.
  expect(grouped(hold("a", 1), hold("a", 2), hold("b", 3), hold("a", 4))).toHaveLength(4);
});

test("an incident shows each node once, by its latest hold", () => {
  expect(grouped(hold("a", 1), hold("b", 2), hold("c", 3), hold("a", 4))).toEqual([["a", "c", "b"]]);
});

test("listing the nodes of an incident reads each hold a constant number of times", () => {
  let reads = 0;
  const lines = Array.from({ length: 1_000 }, (_, index) => ({
    ...hold("", -index),
    get node() {
      reads++;
      return `node_${index}`;
    },
  }));
  expect(latestByNode({ key: "incident", lines })).toHaveLength(lines.length);
  expect(reads).toBeLessThan(3 * lines.length);
});

test("an open incident stays open when holds are added or dropped, and a newer equal incident is not open", () => {
  const incident = [hold("a", 1_000), hold("b", 1_001), hold("c", 1_002)];
  const open = new Set([lineKeys(groupIncidents(incident.toReversed())[0]!)[0]!]);
  const areOpen = (...lines: readonly ActivityLine[]) =>
    groupIncidents(lines.toReversed()).map((item) => isOpenItem(item, open));
  expect(areOpen(hold("d", 900), ...incident, hold("e", 1_100))).toEqual([true]);
  const newer = [hold("a", 3_000), hold("b", 3_001), hold("c", 3_002)];
  expect(areOpen(...incident.slice(1), hold("e", 1_100), ...newer)).toEqual([false, true]);
  // The line that was the newest when the incident was opened may be dropped as well.
  expect(areOpen(hold("e", 1_100), hold("f", 1_101), hold("g", 1_102))).toEqual([true]);
});
