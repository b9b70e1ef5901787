import { expect, test } from "vitest";
import type { Action } from "../../../../../src/model/remediation/episode.ts";
import { actionView } from "../../../../../src/web/api/row-views.ts";
import { actionLine } from "../../../../../src/web/ui/page/activity/activity-lines.ts";
import { awaitingAction, SAMPLES_START_MS } from "../../../api/remediation-view-fixture.ts";

const answeredAt = SAMPLES_START_MS + 3_600_000;
const answered = { operator: "alice", at: answeredAt };

const lineOf = (change: Partial<Action>) => actionLine(actionView({ ...awaitingAction, answered, ...change }));

test.each([
  [{ state: "approved", detail: null }, "approved", "approved by alice"],
  [
    { state: "rejected", endedAt: answeredAt, detail: "alice rejected act-3" },
    "rejected",
    "rejected by alice, alice rejected act-3",
  ],
  [{ state: "lapsed", endedAt: answeredAt + 60_000, detail: null }, "lapsed", "approved by alice"],
  [
    { state: "lapsed", endedAt: answeredAt, detail: "bob lifted the rejection" },
    "lapsed",
    "rejected by alice, bob lifted the rejection",
  ],
] as const)("an answered action says who answered it, and how: %o", (change, badge, detail) => {
  expect(lineOf(change)).toMatchObject({ badge, detail });
});

test("an approved action has the time of its approval until it is sent", () => {
  expect(Date.parse(lineOf({ state: "approved" }).at)).toBe(answeredAt);
  const sentAt = answeredAt + 60_000;
  expect(Date.parse(lineOf({ state: "sent", sentAt }).at)).toBe(sentAt);
});
