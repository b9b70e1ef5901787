import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { runAtOnce } from "../../src/base/steps.ts";
import { startDaemonGroup } from "../harness/daemon-group.ts";
import { commandsOf } from "../harness/operator-commands.ts";

test("a command that was forwarded late does not undo a later pause or hold", async () => {
  const group = await startDaemonGroup();
  await group.advance(4 * MINUTE_MS);
  const [one, two] = group.daemons;
  const [leader, standby] = [one!, two!].map(({ roleSwitch }, index) => commandsOf(roleSwitch.active, `op-${index}`));
  await leader!.pause("deploy");
  await leader!.hold("node_1", "disk swap");
  const { forwardedCommands } = one!.database.state;
  const { pending } = forwardedCommands;
  const late: (typeof forwardedCommands)["pending"] = async () => [];
  Object.assign(forwardedCommands, { pending: late });
  const forwarded = [standby!.resume(), standby!.release("node_1")];
  await group.advance(2 * SECOND_MS);
  await leader!.pause("incident");
  await leader!.hold("node_1", "broken again");
  Object.assign(forwardedCommands, { pending });
  await group.advance(4 * SECOND_MS);
  expect(await Promise.all(forwarded)).toMatchObject([
    { ok: false, error: { kind: "conflict", message: expect.stringContaining("paused after") } },
    { ok: false, error: { kind: "conflict", message: expect.stringContaining("held after") } },
  ]);
  const { view } = one!.roleSwitch.active;
  expect(view.status().paused).toMatchObject({ reason: "incident" });
  expect(runAtOnce(view.explain("node_1")).holds).toMatchObject([{ reason: "op-0 holds it: broken again" }]);
  const ended = [standby!.resume(), standby!.release("node_1")];
  await group.advance(2 * SECOND_MS);
  expect(await Promise.all(ended)).toMatchObject([{ ok: true }, { ok: true }]);
});
