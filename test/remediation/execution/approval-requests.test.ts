import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { notificationsOf } from "../../harness/remediation-results.ts";

const config = remediationConfig([rebootOffline({ mode: "approve", forMs: MINUTE_MS })]);

const requestsApproval = (changes: readonly JournalChange[]) =>
  changes.some((change) => change.kind === "action" && change.row.state === "awaiting");

/** Fails commits that request approval. With `isWritten`, only the response is lost. */
function failRequests(network: QuietNetwork, isWritten: boolean): void {
  network.injectedFailures.crashAt = {
    when: "before",
    changes(changes) {
      if (!requestsApproval(changes)) return false;
      if (isWritten) void network.store.journal.commit(changes);
      throw new Error("the disk is full");
    },
  };
}

test("an id that a notification named before a crash is not that of another action after it", async () => {
  const network = await startQuietNetwork({ config });
  const [first, second] = onePerRegion(network, 2);
  const recoverAt = START_MS + 12 * MINUTE_MS;
  network.interventions.startFailure(first!, { failureMode: "outage", remedy: "time", recoverAt });
  failRequests(network, false);
  await network.advance(4 * MINUTE_MS);
  network.kill();
  network.injectedFailures.crashAt = null;
  await network.restart({ downMs: 5 * MINUTE_MS });
  network.failNode(second!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  const { id, node } = network.controller().view.approvals()[0]!;
  expect(node).toBe(second);
  await network.advance(MINUTE_MS);
  const named = notificationsOf(network, "approval").filter(({ summary }) => summary.startsWith(`${id}: `));
  expect(named.map(({ node }) => node)).toEqual([second]);
});

test("approval is requested again if it is not known whether the request was journaled", async () => {
  const network = await startQuietNetwork({ config });
  const [node] = network.nodes();
  network.failNode(node!);
  failRequests(network, true);
  await network.advance(3 * MINUTE_MS);
  network.injectedFailures.crashAt = null;
  await network.advance(5 * MINUTE_MS);
  const waiting = network.controller().view.approvals();
  expect(waiting).toMatchObject([{ node }]);
  expect(notificationsOf(network, "approval")).toMatchObject([{ summary: expect.stringContaining(waiting[0]!.id) }]);
  // Those that are not known to the daemon are not shown as waiting.
  expect(network.actions().filter(({ state }) => state === "awaiting")).toMatchObject([{ id: waiting[0]!.id }]);
  await network.commands().approve(waiting[0]!.id);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("an approved action is not sent if its approval expires while its node is read", async () => {
  let clock!: QuietNetwork["daemon"]["clock"];
  const network = await startQuietNetwork({
    config: { ...config, safety: { ...config.safety, approvalTtlMs: 5 * MINUTE_MS } },
    wrapTransport: (service) => ({
      ...service,
      async request(request, signal) {
        if (request.path.startsWith("/v1/nodes/") && request.method === "GET") await clock.sleep(9 * SECOND_MS);
        return service.request(request, signal);
      },
    }),
  });
  clock = network.daemon.clock;
  const [node] = network.nodes();
  network.failNode(node!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  const { id } = network.controller().view.approvals()[0]!;
  await network.commands().pause("a test");
  await network.commands().approve(id);
  await network.advance(5 * MINUTE_MS - 4 * SECOND_MS);
  await network.commands().resume();
  await network.advance(2 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions().find((action) => action.id === id)).toMatchObject({
    state: "lapsed",
    detail: "the approval expired after 5m",
  });
});

test("a request for approval whose policy becomes a dry run says so", async () => {
  const policies = [rebootOffline({ mode: "approve", forMs: MINUTE_MS })];
  const network = await startQuietNetwork({ config: remediationConfig(policies) });
  network.failNode(network.nodes()[0]!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  await network.reload({ config: remediationConfig(policies, { mode: "dry_run" }) });
  await network.advance(MINUTE_MS);
  expect(network.actions()[0]).toMatchObject({
    state: "withdrawn",
    detail: "its policy was removed or changed, or is now in dry_run",
  });
});
