import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { fail } from "../../../src/base/result.ts";
import type { ExternalBlockers, Transport } from "../../../src/model/ports.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { startQuietNetwork } from "../../harness/quiet-network.ts";
import { notificationsOf } from "../../harness/remediation-results.ts";

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
  expect(network.holdReasons(node!)).toEqual(["backoff"]);
  isReachable = true;
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(notificationsOf(network, "approval")).toHaveLength(1);
});
