import { expect, test } from "vitest";
import { isGivenUp } from "../../../../src/policy/episodes/attempts.ts";
import { RemediationRecords } from "../../../../src/policy/remediation-records.ts";
import { closedEpisodeOf, timerOf } from "../../../journal/arbitrary-changes.ts";

test.each([
  ["is given up as long as it fires on", 9, true],
  ["is not given up if it was healthy since and fires again", 11, false],
])("a node whose last attempt was given up %s", (_, firesSince, expected) => {
  const [policy, node] = ["reboot-offline", "node_1"];
  const givenUp = closedEpisodeOf(1, 10, { policy, node, state: "given_up", healed: false });
  const timer = { ...timerOf(node), state: "firing", since: firesSince } as const;
  const rows = { timers: [timer], episodes: [givenUp], actions: [], holds: [], facts: new Map(), lastNumber: 1 };
  expect(isGivenUp(new RemediationRecords(rows), policy, node, false)).toBe(expected);
});
