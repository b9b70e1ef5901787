import { expect, test } from "vitest";
import { HOUR_MS } from "../../../../src/base/duration.ts";
import { listsOnlySettings, startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { businessLimits } from "../../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";

test.each([
  [
    "how often they allow a walk",
    200,
    HOUR_MS,
    /^warming_up: 1 of 2 .*; the month's calls allow a walk every \S+, until the month ends in 30d22h\S+$/,
  ],
  [
    "that they allow no other one",
    4,
    25 * HOUR_MS,
    /^inventory_incomplete: .* old, more than \d+ s; the month's calls do not suffice for another walk, so the list is read again in 29d\S+, when the month ends, or after a reload that changes limits$/,
  ],
] as const)("if the month's calls leave too few walks, the hold says %s", async (_, callsPerMonth, afterMs, text) => {
  const limits = { ...businessLimits, plan: { ...businessLimits.plan, callsPerMonth } };
  const settings = { ...listsOnlySettings, limits };
  const network = await startQuietNetwork({ settings, config: remediationConfig([rebootOffline()]) });
  await network.advance(afterMs);
  const { blockers } = network.explain(network.nodes()[0]!).policies[0]!;
  expect(blockers.map(({ reason, detail }) => `${reason}: ${detail}`)).toContainEqual(expect.stringMatching(text));
});
