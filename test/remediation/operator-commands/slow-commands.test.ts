import { expect, test } from "vitest";
import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createSlowStore, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";

/** A network whose journal takes some time to write a command, once `slow` has a delay. */
async function startWithSlowCommands(policy = rebootOffline()) {
  const clock = createVirtualClock(START_MS);
  const slow: { delayMs: DurationMs } = { delayMs: 0 };
  const store = createSlowStore(clock, (changes) =>
    changes.some(({ kind }) => kind === "command") ? slow.delayMs : 0,
  );
  const config = remediationConfig([policy]);
  return { network: await startQuietNetwork({ config, clock, store }), slow };
}

test("a pause and a hold last although earlier ones expire while they are journaled", async () => {
  const { network, slow } = await startWithSlowCommands();
  const [node] = network.nodes();
  await network.commands().pause("a test", 5 * MINUTE_MS);
  await network.commands().hold(node!, "a test", 5 * MINUTE_MS);
  await network.advance(5 * MINUTE_MS - SECOND_MS);
  slow.delayMs = 5 * SECOND_MS;
  const replies = [network.commands().pause("more", HOUR_MS), network.commands().hold(node!, "more", HOUR_MS)];
  await network.advance(MINUTE_MS);
  expect(await Promise.all(replies)).toMatchObject([{ ok: true }, { ok: true }]);
  slow.delayMs = 0;
  await network.restart();
  await network.advance(3 * MINUTE_MS);
  expect(network.controller().view.status().paused).toMatchObject({ reason: "more" });
  expect(network.explain(node!).holds).toMatchObject([{ kind: "held", reason: "an operator holds it: more" }]);
});

test("a hold lasts although others reboot the node while it is journaled", async () => {
  const policy = rebootOffline({ when: 'node.status == "online"', mode: "approve" });
  const { network, slow } = await startWithSlowCommands(policy);
  const [node] = network.nodes();
  await network.advance(10 * MINUTE_MS);
  slow.delayMs = 3 * MINUTE_MS;
  const reply = network.commands().hold(node!, "a disk swap");
  network.interventions.restart(node!);
  await network.advance(4 * MINUTE_MS);
  expect(await reply).toMatchObject({ ok: true });
  expect(network.explain(node!).holds).toMatchObject([{ kind: "held", until: null, ownership: expect.anything() }]);
});

test("a release also ends the hold after a reboot by others although the operator's hold expires meanwhile", async () => {
  const policy = rebootOffline({ when: 'node.status == "online"', mode: "approve" });
  const { network, slow } = await startWithSlowCommands(policy);
  const [node] = network.nodes();
  await network.advance(10 * MINUTE_MS);
  await network.commands().hold(node!, "a disk swap", 10 * MINUTE_MS);
  network.interventions.restart(node!);
  await network.advance(10 * MINUTE_MS - SECOND_MS);
  expect(network.explain(node!).holds).toMatchObject([{ kind: "held", ownership: expect.anything() }]);
  slow.delayMs = 5 * SECOND_MS;
  const reply = network.commands().release(node!);
  await network.advance(MINUTE_MS);
  expect(await reply).toMatchObject({ ok: true });
  expect(network.explain(node!).holds).toEqual([]);
});

test.each(["reject", "approve"] as const)("%s takes effect although its request expires meanwhile", async (name) => {
  const { network, slow } = await startWithSlowCommands(rebootOffline({ mode: "approve" }));
  network.failNode(network.nodes()[0]!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  const [{ id, expiresAt } = { id: "", expiresAt: 0 }] = network.controller().view.approvals();
  await network.commands().pause("a test");
  await network.advance(expiresAt - network.daemon.clock.now() - 10 * SECOND_MS);
  slow.delayMs = 2 * MINUTE_MS;
  const reply = network.commands()[name](id, "a test");
  await network.advance(3 * MINUTE_MS);
  expect(await reply).toMatchObject({ ok: true });
  expect(network.actions()[0]).toMatchObject({ id, state: name === "reject" ? "rejected" : "approved" });
});
