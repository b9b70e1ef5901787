import { expect, test } from "vitest";
import { HOUR_MS } from "../../../src/base/duration.ts";
import type { NodeHold } from "../../../src/model/remediation/episode.ts";
import { RemediationRecords } from "../../../src/policy/remediation-records.ts";
import { COOLDOWN_FACT } from "../../../src/remediation/evaluation/inventory-trust.ts";
import { movedTimes } from "../../../src/remediation/state/moved-times.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";

const advance = { byMs: 6 * HOUR_MS, behindSince: START_MS, openedAt: START_MS };

/** Returns the hold after the journal's clock was corrected. */
function moved(hold: NodeHold): NodeHold | undefined {
  const contents = { timers: [], episodes: [], actions: [], holds: [hold], facts: new Map(), lastNumber: 0 };
  const [change] = movedTimes(new RemediationRecords(contents), advance);
  return change?.kind === "hold" ? change.row : undefined;
}

const operatorHold = {
  node: "node_1",
  policy: null,
  kind: "held",
  at: START_MS,
  until: null,
  reason: "a test",
} as const;
const ownership = { at: START_MS, until: START_MS + 2 * HOUR_MS, reason: "another client rebooted it" };

test("a hold because others acted on the node keeps its duration behind an operator's hold too", () => {
  const later = { ...ownership, at: START_MS + 6 * HOUR_MS, until: START_MS + 8 * HOUR_MS };
  expect(moved({ ...operatorHold, ownership })?.ownership).toEqual(later);
  expect(moved({ ...operatorHold, at: START_MS - 1, ownership })).toEqual({
    ...operatorHold,
    at: START_MS - 1,
    ownership: later,
  });
});

test("a hold because others acted on the node ends as before if it is older than the lag of the clock", () => {
  const earlier = { ...ownership, at: START_MS - 1 };
  expect(moved({ ...operatorHold, ownership: earlier })?.ownership).toEqual(earlier);
  expect(moved({ ...operatorHold, at: START_MS - 1, ownership: earlier })).toBeUndefined();
});

test.each([
  { end: String(START_MS + HOUR_MS), moved: String(START_MS + 7 * HOUR_MS) },
  { end: String(START_MS - 1), moved: undefined },
  { end: "untrusted", moved: undefined },
])("the cooldown after untrusted data keeps its duration ($end)", ({ end, moved }) => {
  const facts = new Map([[COOLDOWN_FACT, end]]);
  const records = new RemediationRecords({ timers: [], episodes: [], actions: [], holds: [], facts, lastNumber: 0 });
  expect(movedTimes(records, advance)).toEqual(
    moved === undefined ? [] : [{ kind: "fact", key: COOLDOWN_FACT, value: moved }],
  );
});
