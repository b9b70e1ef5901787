import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { actionLines, episodeLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

const oneReboot = remediationRules([rebootOffline({ steps: [steps.reboot] })]);
const isProven = (context: QuietNetwork) => context.controller().view.policies()[0]!.isProven;

test("a node that an operator repairs after our reboot did nothing is not healed by us, and proves no canary", async () => {
  const context = await startQuietNetwork({ rules: oneReboot });
  const [node] = context.nodes("us-east");
  const healAt = context.daemon.clock.now() + 10 * MINUTE_MS;
  context.interventions.startFailure(node!, { failureMode: "outage", remedy: "person", recoverAt: healAt });
  await context.advance(12 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(context.status(node!)).toBe("maintenance");
  await context.advance(30 * MINUTE_MS);
  expect(context.status(node!)).toBe("online");
  expect(actionLines(context)).toEqual(["reboot: in_doubt"]);
  expect(context.actions()).toMatchObject([{ detail: expect.stringContaining("maintenance") }]);
  expect(episodeLines(context)).toEqual(["cleared"]);
  expect(isProven(context)).toBe(false);
  await context.stop();
});

test("a node that an operator quarantines after our reboot is not healed by us when it is freed", async () => {
  const context = await startQuietNetwork({ rules: oneReboot });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advanceUntil(() => context.postCount() === 1);
  await context.advance(MINUTE_MS);
  context.interventions.quarantine(node!, context.daemon.clock.now() + 3 * MINUTE_MS);
  context.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: context.daemon.clock.now(),
  });
  await context.advance(40 * MINUTE_MS);
  expect(context.status(node!)).toBe("online");
  expect(episodeLines(context)).toEqual(["cleared"]);
  expect(isProven(context)).toBe(false);
  await context.stop();
});
