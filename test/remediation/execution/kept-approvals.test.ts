import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { fail } from "../../../src/base/result.ts";
import type { ExternalBlockers, Transport } from "../../../src/model/ports.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { actionLines, episodeStates, notificationsOf } from "../../harness/remediation-results.ts";

const approvePolicy = rebootOffline({ mode: "approve", forMs: MINUTE_MS });

test("an approval is kept if the read of the node before the action fails", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([approvePolicy]) });
  const [node] = network.nodes();
  network.failNode(node!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  network.setFault({ kind: "status", status: 500 }, "GET /v1/nodes/");
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advance(5 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  network.setFault(null);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(notificationsOf(network, "approval")).toHaveLength(1);
});

test("an approval is kept if the action is blocked between its decision and its POST", async () => {
  let isBlocked = false;
  const externalBlockers: ExternalBlockers = { blocks: () => Promise.resolve({ ok: true, value: isBlocked }) };
  const policy = { ...approvePolicy, blockedBy: [{ kind: "query", query: "up" } as const] };
  const network = await startQuietNetwork({ config: remediationConfig([policy]), externalBlockers });
  const [node] = network.nodes();
  network.failNode(node!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  // The last result of the query, which did not block, is still used for the decision.
  isBlocked = true;
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advance(5 * MINUTE_MS + 30 * SECOND_MS);
  isBlocked = false;
  await network.advance(5 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("an approval is kept if the service can't be reached for the POST", async () => {
  let isReachable = false;
  const wrapTransport = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      if (request.method === "GET" || isReachable) return service.request(request, signal);
      return fail({ kind: "unreachable", message: "connection refused" });
    },
  });
  const network = await startQuietNetwork({ config: remediationConfig([approvePolicy]), wrapTransport });
  const [node] = network.nodes();
  network.failNode(node!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advance(5 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "approved", sentAt: null, detail: "connection refused" }]);
  const { view } = network.controller();
  expect(view.approvals()).toEqual([]);
  const [approved] = view.approvals("approved");
  expect(approved!.expiresAt - approved!.approvedAt!).toBe(4 * HOUR_MS);
  expect(network.holdReasons(node!)).toEqual(["backoff"]);
  isReachable = true;
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(notificationsOf(network, "approval")).toHaveLength(1);
});

for (const status of [401, 403, 429] as const) {
  test(`an approval is kept if the service answers ${status} to the POST, which stays on record`, async () => {
    const config = remediationConfig([approvePolicy], { maxActions: { amount: 2, perMs: HOUR_MS } });
    const network = await startQuietNetwork({ config });
    const [node] = network.nodes();
    network.failNode(node!);
    await network.advanceUntil(() => network.controller().view.approvals().length > 0);
    network.setFault({ kind: "status", status }, "POST");
    const { id } = network.controller().view.approvals()[0]!;
    await network.commands("alice").approve(id);
    await network.advanceUntil(() => network.postCount() === 1);
    network.setFault(null);
    await network.advance(SECOND_MS);
    expect(network.actions()).toMatchObject([
      { id, state: "ended", outcome: "failed", sentAt: expect.any(Number) },
      {
        state: "approved",
        sentAt: null,
        endedAt: null,
        answered: { operator: "alice" },
        detail: expect.stringContaining(`${id} was not executed: POST /v1/nodes/${node}/reboot answered ${status}`),
      },
    ]);
    await network.advance(HOUR_MS);
    expect(actionLines(network)).toEqual(["reboot: failed", "reboot: verified"]);
    expect(notificationsOf(network, "approval")).toHaveLength(1);
  });
}

test("an approval ends with the episode that is given up after too many 429s", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([approvePolicy]) });
  network.failNode(network.nodes()[0]!, "operator");
  network.setFault({ kind: "status", status: 429, retryAfter: "0" }, "POST");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advanceUntil(() => episodeStates(network)[0] === "given_up");
  await network.advance(5 * MINUTE_MS);
  expect(network.postCount()).toBe(5);
  expect(network.actions().map(({ state }) => state)).toEqual(Array(5).fill("ended"));
});

test("an approval that is kept after a 429 expires when the first one would have", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([approvePolicy], { approvalTtlMs: HOUR_MS }) });
  network.failNode(network.nodes()[0]!, "operator");
  network.setFault({ kind: "status", status: 429, retryAfter: "7200" }, "POST");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(55 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ outcome: "failed" }, { state: "approved" }]);
  await network.advance(10 * MINUTE_MS);
  expect(network.actions()[1]).toMatchObject({ state: "lapsed", detail: "the approval expired after 1h" });
});

for (const [moment, when, state] of [
  ["right after the intent is journaled", "after", "intended"],
  ["right before `posting` is journaled", "before", "posting"],
] as const) {
  test(`an approval is kept if the daemon crashes ${moment}`, async () => {
    const network = await startQuietNetwork({ config: remediationConfig([approvePolicy]) });
    network.failNode(network.nodes()[0]!);
    await network.advanceUntil(() => network.controller().view.approvals().length > 0);
    const changes = (all: readonly JournalChange[]) =>
      all.some((change) => change.kind === "action" && change.row.state === state);
    network.injectedFailures.crashAt = { when, changes };
    const { id } = network.controller().view.approvals()[0]!;
    // The command's reply is lost if the crash comes first.
    void network.commands("alice").approve(id);
    await network.advance(MINUTE_MS);
    expect(network.isAlive()).toBe(false);
    await network.restart();
    await network.advance(20 * MINUTE_MS);
    expect(network.actions()).toMatchObject([{ id, outcome: "verified", answered: { operator: "alice" } }]);
    expect(network.postCount()).toBe(1);
    expect(notificationsOf(network, "approval")).toHaveLength(1);
  });
}
