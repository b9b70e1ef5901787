import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../harness/policies.ts";

/** Nodes that fail at once. The others show that the service still receives reports. */
const FAILED = 50;

const isNotified = (change: JournalChange) => change.kind === "episode" && change.row.step === 1;

test("the event loop gets a turn after each notify step of a mass event", async () => {
  const policy = rebootOffline({ steps: [steps.notify, steps.reboot] });
  const network = await startQuietNetwork({ config: remediationConfig([policy], withoutLimits) });
  let turns = 0;
  let isCounting = false;
  const countTurn = () => {
    turns++;
    if (isCounting) setImmediate(countTurn);
  };
  let notified = 0;
  network.injectedFailures.crashAt = {
    when: "after",
    changes(all) {
      notified += all.filter(isNotified).length;
      if (notified > 0 && !isCounting && notified < FAILED) {
        isCounting = true;
        setImmediate(countTurn);
      }
      if (notified >= FAILED) isCounting = false;
      return false;
    },
  };
  for (const node of network.nodes().slice(0, FAILED)) network.failNode(node, "operator");
  await network.advance(10 * MINUTE_MS);
  expect(notified).toBeGreaterThanOrEqual(FAILED);
  expect(turns).toBeGreaterThanOrEqual(FAILED - 1);
});
