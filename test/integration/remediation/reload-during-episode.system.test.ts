import { expect, test } from "vitest";
import { waitUntil } from "../wait-until.ts";
import { ADMIN_TOKEN, type RunningDaemon, rebootOffline, startDaemonFor, startHealingSetup } from "./healing-daemon.ts";

const OUTAGE = { failureMode: "outage", remedy: "reboot" } as const;

/** Starts a paused daemon with a firing node. */
async function startWithPausedEpisode(policy: object) {
  const setup = await startHealingSetup();
  const [node] = setup.nodes;
  const config = setup.writeConfig([policy]);
  const daemon = await startDaemonFor(setup, config);
  await daemon.sendCommand("/api/v1/pause", { reason: "a test" });
  setup.interventions.startFailure(node!, OUTAGE);
  const { id } = await waitUntil("an episode has begun", () => daemon.episode(node!));
  return { setup, daemon, node: node!, episode: id };
}

async function reload(daemon: RunningDaemon): Promise<{ readonly status: number; readonly lines: readonly string[] }> {
  const response = await daemon.ask("/-/reload", {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  return { status: response.status, lines: (await response.text()).trimEnd().split("\n") };
}

const timerOf = async (daemon: RunningDaemon, node: string) => (await daemon.explain(node)).policies[0]?.timer?.state;

test("a policy file with errors is rejected with file, line and column of each, and the episode continues under the old one", async () => {
  const { setup, daemon, node, episode } = await startWithPausedEpisode(rebootOffline());
  const policies = setup.folder.write(
    "policies.yaml",
    `policies:
  - {name: cut-off, mode: enforce, when: 'node.status == "offline"', for: 1s, steps: [{action: quarantine, duration: 1h}]}
  - name: reboot-offline
    mode: enforce
    when: node.stauts == "offline"
    for: 1 minute
    steps: [{action: rebot}]
`,
  );
  expect(await reload(daemon)).toEqual({
    status: 400,
    lines: [
      expect.stringMatching(`^${policies}:5:11: policies\\[1\\]\\.when: .*unknown field node\\.stauts`),
      expect.stringMatching(`^${policies}:6:10: policies\\[1\\]\\.for: found "1 minute"`),
      expect.stringMatching(`^${policies}:7:\\d+: policies\\[1\\]\\.steps\\[0\\]`),
    ],
  });
  expect((await daemon.scrape()).sum("proxywarden_config_last_reload_successful")).toBe(0);
  await daemon.sendCommand("/api/v1/resume");
  await waitUntil("it is healed", async () => (await daemon.episode(node))?.state === "healed");
  expect((await daemon.episode(node))!.id).toBe(episode);
  expect(setup.serviceProxy.postRequests.map(({ path }) => path)).toEqual([`/v1/nodes/${node}/reboot`]);
});

test("a longer `for` returns a node to pending and withdraws its episode; an unchanged `for` keeps both", async () => {
  const { setup, daemon, node, episode } = await startWithPausedEpisode(rebootOffline());
  expect((await reload(daemon)).status).toBe(200);
  expect(await timerOf(daemon, node)).toBe("firing");
  expect(await daemon.episode(node)).toMatchObject({ id: episode, state: "firing" });

  daemon.configure(setup.writeConfig([rebootOffline({ for: "1h" })]).text);
  expect((await reload(daemon)).status).toBe(200);
  expect(await timerOf(daemon, node)).toBe("pending");
  expect(await daemon.episode(node)).toMatchObject({ id: episode, state: "withdrawn" });
  expect((await daemon.scrape()).sum("proxywarden_config_last_reload_successful")).toBe(1);

  daemon.configure(setup.writeConfig([rebootOffline()]).text);
  expect((await reload(daemon)).status).toBe(200);
  await waitUntil("it fires again", async () => (await daemon.episode(node))?.state === "firing");
  expect((await daemon.episode(node))!.id).not.toBe(episode);
  // A reload does not end the pause. Nothing else holds the node, because the inventory is kept.
  await waitUntil("the pause alone holds it", async () => (await daemon.reasons(node)).join() === "paused");
  expect(JSON.stringify(daemon.log.lines)).not.toContain("never said what time it is");
  expect(setup.serviceProxy.postRequests).toEqual([]);
});

test("a change from approve to enforce applies immediately: the request for approval lapses, and the same episode continues", async () => {
  const { setup, daemon, node, episode } = await startWithPausedEpisode(rebootOffline({ mode: "approve" }));
  await daemon.sendCommand("/api/v1/resume");
  await waitUntil("an action waits", async () => (await daemon.actions())[0]?.state === "awaiting");
  daemon.configure(setup.writeConfig([rebootOffline()]).text);
  expect((await reload(daemon)).status).toBe(200);
  await waitUntil("it is healed", async () => (await daemon.episode(node))?.state === "healed");
  expect((await daemon.episode(node))!.id).toBe(episode);
  expect(await daemon.actions()).toMatchObject([{ state: "lapsed" }, { outcome: "verified" }]);
  expect(setup.serviceProxy.postRequests).toHaveLength(1);
});

test("a reload while a POST is under way waits for its answer, and it is posted once", async () => {
  const setup = await startHealingSetup();
  const [node] = setup.nodes;
  const daemon = await startDaemonFor(setup, setup.writeConfig([rebootOffline()]));
  let answer = () => {};
  const answerDue = new Promise<void>((resolve) => {
    answer = resolve;
  });
  setup.serviceProxy.setHooks({ answered: () => answerDue });
  setup.interventions.startFailure(node!, OUTAGE);
  await waitUntil("the POST is under way", () => setup.serviceProxy.postRequests.length === 1);
  const reloading = reload(daemon);
  expect(await daemon.actions()).toMatchObject([{ state: "posting" }]);
  answer();
  expect((await reloading).status).toBe(200);
  await waitUntil("it is healed", async () => (await daemon.episode(node!))?.state === "healed");
  expect(await daemon.actions()).toMatchObject([{ outcome: "verified", in_doubt: false }]);
  expect(setup.serviceProxy.postRequests).toHaveLength(1);
});
