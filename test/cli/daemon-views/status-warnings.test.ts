import { expect, test } from "vitest";
import { byName } from "../../../src/base/by-name.ts";
import { COLLECTORS } from "../../../src/model/snapshot.ts";
import { budgetView, type StatusSnapshot, statusView } from "../../../src/web/api/status-views.ts";
import { startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { startVirtualDaemon, statusSnapshotOf, stopVirtualDaemon } from "../../harness/daemon/virtual-daemon.ts";
import { remediationConfig } from "../../harness/policies.ts";
import { idleRemediation, SAMPLES_START_MS } from "../../web/api/remediation-view-fixture.ts";
import { startTestServer } from "../../web/http/test-server.ts";
import { runInProcess } from "../terminal.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

test("status says which collectors have no monthly calls left", async () => {
  const daemon = await startVirtualDaemon({ scenario: { nodes: 4, sessions: 20 } });
  const known = statusSnapshotOf(daemon);
  await stopVirtualDaemon(daemon);
  const spent = { ...known.plan.nodes!, callsPerMinute: 0, boundBy: "month" } as const;
  const { url } = await startTestServer({
    status: () => statusView({ ...known, plan: { ...known.plan, nodes: spent } }),
    budget: () => budgetView(known),
    remediation: () => idleRemediation,
  });
  const { out } = await runInProcess("status", "--url", url);
  expect(out).toMatch(/^nodes {6}stopped .* no monthly calls left for polling$/m);
  expect(out).toMatch(/^sessions {3}every .* not read yet$/m);
});

test("status does not say that details are ok while the service has not been reached yet", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([]), settings: {} });
  network.setFault({ kind: "reset" });
  await network.restart();
  await network.advance(MINUTE);
  const known = statusSnapshotOf(network.daemon);
  const { url } = await startTestServer({
    status: () => statusView(known),
    budget: () => budgetView(known),
    remediation: () => idleRemediation,
  });
  const { out } = await runInProcess("status", "--url", url);
  expect(out).toMatch(/^details +every \w+ +- +- +not read yet$/m);
  expect(out).not.toMatch(/ ok$/m);
});

test("status of a standby does not say that it will read data, or that none is collected", async () => {
  const daemon = await startVirtualDaemon({ scenario: { nodes: 4, sessions: 20 } });
  const known = statusSnapshotOf(daemon);
  await stopVirtualDaemon(daemon);
  const linesOf = async (leader: object | null, plan: StatusSnapshot["plan"]) => {
    const { url } = await startTestServer({
      status: () => ({ ...statusView({ ...known, snapshot: null, plan }), leader }),
      budget: () => budgetView(known),
      remediation: () => idleRemediation,
    });
    const { out } = await runInProcess("status", "--url", url);
    return out.split("\n").filter((line) => /^(?:nodes|sessions) /.test(line));
  };
  const standby = { is_this: false, name: "alpha", url: null };
  const unplanned = byName(COLLECTORS, () => null);
  expect(await linesOf(standby, unplanned)).toEqual([
    "nodes         not known: this daemon does not poll",
    "sessions      not known: this daemon does not poll",
    expect.stringMatching(/^nodes +- +- +- /),
    expect.stringMatching(/^sessions +- +- +- /),
  ]);
  expect(await linesOf(null, { ...known.plan, sessions: null })).toEqual([
    "nodes         not known yet",
    "sessions      not collected",
    expect.stringMatching(/^nodes +every /),
    expect.stringMatching(/^sessions +not collected +- +- /),
  ]);
});

test("status says that the last reload was rejected, and that the service's clock differs", async () => {
  const daemon = await startVirtualDaemon({ scenario: { nodes: 4, sessions: 20 } });
  const known = statusSnapshotOf(daemon);
  await stopVirtualDaemon(daemon);
  const linesOf = async (changes: Partial<StatusSnapshot>) => {
    const { url } = await startTestServer({
      status: () => statusView({ ...known, ...changes }),
      budget: () => budgetView(known),
      remediation: () => idleRemediation,
    });
    const { out } = await runInProcess("status", "--url", url);
    return out.split("\n").filter((line) => /^(?:config|clock) /.test(line));
  };
  expect(await linesOf({ configRejectedAt: SAMPLES_START_MS, clockSkewMs: 60 * MINUTE })).toEqual([
    "config        rejected at 2026-11-21 03:00:00 UTC; the previous configuration stays active; run check to list the errors",
    "clock         the service's clock is 1h ahead of the daemon's",
  ]);
  expect(await linesOf({ clockSkewMs: -2 * MINUTE })).toEqual([
    "clock         the service's clock is 2m behind the daemon's",
  ]);
  expect(await linesOf({ clockSkewMs: 50 * SECOND })).toEqual([]);
});
