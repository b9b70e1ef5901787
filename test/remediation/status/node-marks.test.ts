import { expect, test } from "vitest";
import { openBooks } from "../../../src/remediation/state/journaled-state.ts";
import type { Change } from "../../../src/model/remediation/journal.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createMemoryStore } from "../../../src/journal/sqlite.ts";
import { createKeptLog, START_MS } from "../../harness/virtual-daemon.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { startWard } from "../../harness/quiet-network.ts";

test("a node is marked by what weighs most of all that the warden has to do with it, and not for longer than that", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ mode: "approve" })]) });
  const [node] = ward.nodes("us-east");
  const { view, orders } = ward.warden();
  expect([...view.marks()]).toEqual([]);
  ward.fell(node!);
  await ward.passUntil(() => view.marks().get(node!) === "pending");
  await ward.passUntil(() => view.marks().get(node!) === "awaiting");
  expect([...view.marks().keys()]).toEqual([node]);
  // What waits for a person weighs more than that it is held; once it was approved, the hold does.
  expect(orders.hold(node!, "its disk is swapped")).toMatchObject({ ok: true });
  expect(view.marks().get(node!)).toBe("awaiting");
  expect(orders.approve(view.approvals()[0]!.id)).toMatchObject({ ok: true });
  expect(view.marks().get(node!)).toBe("held");
  orders.release(node!);
  await ward.passUntil(() => view.marks().get(node!) === "awaiting" || view.marks().get(node!) === "acting");
  if (view.marks().get(node!) === "awaiting") orders.approve(view.approvals()[0]!.id);
  await ward.passUntil(() => view.marks().get(node!) === "acting");
  await ward.passUntil(() => view.marks().get(node!) === "episode");
  await ward.passUntil(() => view.marks().size === 0);
  await ward.stop();
});

test("dry runs, and nodes that fire while nothing is done about them, have marks of their own", async () => {
  const policies = [
    rebootOffline({ name: "paper", mode: "dry_run", match: 'node.region != "us-east"', steps: [steps.reboot] }),
    rebootOffline({ name: "real", match: 'node.region == "us-east"', steps: [steps.reboot] }),
  ];
  const ward = await startWard({ rules: rulesOf(policies) });
  const [paper, real] = [ward.nodes("eu-west")[0]!, ward.nodes("us-east")[0]!];
  const { view } = ward.warden();
  ward.fell(paper, "person");
  await ward.passUntil(() => view.marks().get(paper) === "shadow");
  ward.fell(real, "person");
  // The only step did not help: it is given up, and goes on firing.
  await ward.passUntil(() => view.marks().get(real) === "firing");
  await ward.stop();
});

test("whoever is told of changes is told of each, once it is so: what could not be written was none", () => {
  const told: Change[] = [];
  const { journal } = createMemoryStore();
  const disk = { isFull: false };
  const books = openBooks({
    journal: {
      ...journal,
      commit(changes) {
        if (disk.isFull) throw new Error("disk full");
        journal.commit(changes);
      },
    },
    clock: createVirtualClock(START_MS),
    log: createKeptLog(),
    lost: null,
    onChange: (changes) => told.push(...changes),
  });
  const fact = (value: string): Change => ({ kind: "fact", key: "warden.test", value });
  expect(books.commit([fact("1")])).toBe(true);
  disk.isFull = true;
  expect(books.commit([fact("2")])).toBe(false);
  // What has happened is so, whether or not it can be written.
  books.record([fact("3")]);
  books.batch(() => books.record([fact("4")]));
  expect(told).toEqual([fact("1"), fact("3"), fact("4")]);
});
