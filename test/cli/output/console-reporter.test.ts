import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { createConsoleReporter } from "../../../src/cli/output/console-reporter.ts";
import { createEventLog } from "../../../src/web/api/event-log.ts";
import { startVirtualDaemon, statusSnapshotOf, stopVirtualDaemon } from "../../harness/daemon/virtual-daemon.ts";
import { verifiedAction } from "../../web/api/remediation-view-fixture.ts";

/** By then the details of all nodes have been read. */
const DETAILS_READ_MS = 16 * MINUTE_MS;

/** Returns the status of a daemon that has monitored this number of nodes for {@link DETAILS_READ_MS}. */
async function statusOf(nodes: number) {
  const daemon = await startVirtualDaemon({ scenario: { nodes, sessions: 20 } });
  await daemon.clock.advance(DETAILS_READ_MS);
  const status = statusSnapshotOf(daemon);
  await stopVirtualDaemon(daemon);
  return status;
}

/** Returns the line about an action with these changes. */
async function lineOf(changes: Partial<typeof verifiedAction>): Promise<string | undefined> {
  const status = await statusOf(4);
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

test("the summary of a network without nodes has no list of statuses", async () => {
  const status = await statusOf(0);
  const [line] = createConsoleReporter(status.monotonic).report(status, createEventLog());
  expect(line!.text).toMatch(/ {2}0 nodes \| 0 active sessions, details of 0 nodes \|/);
});

test("the summary of a network of one node does not use the plural", async () => {
  const status = await statusOf(1);
  const lines = createConsoleReporter(status.monotonic).report(status, createEventLog());
  expect(lines.map(({ text }) => text).join("\n")).toMatch(/ 1 node: .* active sessions, details of 1 node \|/);
});
