import { expect, test } from "vitest";
import { createConsoleReporter } from "../../../src/cli/output/console-reporter.ts";
import { createEventLog } from "../../../src/web/api/event-log.ts";
import { startVirtualDaemon, statusSnapshotOf, stopVirtualDaemon } from "../../harness/virtual-daemon.ts";
import { verifiedAction } from "../../web/api/remediation-view-fixture.ts";

/** Returns the line about an action with these changes. */
async function lineOf(changes: Partial<typeof verifiedAction>): Promise<string | undefined> {
  const daemon = await startVirtualDaemon({ scenario: { nodes: 4, sessions: 20 } });
  const status = statusSnapshotOf(daemon);
  await stopVirtualDaemon(daemon);
  const reporter = createConsoleReporter(status.monotonic);
  const eventLog = createEventLog();
  eventLog.record([{ kind: "action", row: { ...verifiedAction, ...changes } }]);
  const lines = reporter.report(status, eventLog);
  return lines.find(({ text }) => text.includes(`(${verifiedAction.id})`))?.text;
}

test("an action in doubt is reported with the reason", async () => {
  expect(await lineOf({ outcome: "in_doubt", detail: "the node was in maintenance" })).toMatch(
    /: in_doubt after \S+, proof: \w+: the node was in maintenance$/,
  );
  expect(await lineOf({ outcome: "verified", detail: "rebooting" })).toMatch(/: verified after \S+, proof: \w+$/);
});
