import { expect, test } from "vitest";
import { ADMIN_TOKEN, type Doctor, rebootOffline, startClinic, startDoctor } from "./healing-daemon.ts";
import { until } from "../wait-until.ts";

const OUTAGE = { ailment: "outage", cure: "reboot" } as const;

/** A doctor whose patient fires, while everything is paused. */
async function startPaused(policy: object) {
  const clinic = await startClinic();
  const [node] = clinic.nodes;
  const prescription = clinic.prescribe([policy]);
  const doctor = await startDoctor(clinic, prescription);
  await doctor.order("/api/v1/pause", { reason: "a test" });
  clinic.people.fallIll(node!, OUTAGE);
  const { id } = await until("an episode has begun", () => doctor.episode(node!));
  return { clinic, doctor, node: node!, episode: id };
}

async function reload(doctor: Doctor): Promise<{ readonly status: number; readonly lines: readonly string[] }> {
  const response = await doctor.ask("/-/reload", {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  return { status: response.status, lines: (await response.text()).trimEnd().split("\n") };
}

const timerOf = async (doctor: Doctor, node: string) => (await doctor.explain(node)).policies[0]?.timer?.state;

test("a policy file with errors is refused whole, with file, line and column of each, and the episode goes on under the old one", async () => {
  const { clinic, doctor, node, episode } = await startPaused(rebootOffline());
  const policies = clinic.folder.write(
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
  expect(await reload(doctor)).toEqual({
    status: 400,
    lines: [
      expect.stringMatching(`^${policies}:5:11: policies\\[1\\]\\.when: .*unknown field node\\.stauts`),
      expect.stringMatching(`^${policies}:6:10: policies\\[1\\]\\.for: found "1 minute"`),
      expect.stringMatching(`^${policies}:7:\\d+: policies\\[1\\]\\.steps\\[0\\]`),
    ],
  });
  expect((await doctor.look()).sum("proxywarden_config_last_reload_successful")).toBe(0);
  await doctor.order("/api/v1/resume");
  await until("it is healed", async () => (await doctor.episode(node))?.state === "healed");
  expect((await doctor.episode(node))!.id).toBe(episode);
  expect(clinic.gate.posts.map(({ path }) => path)).toEqual([`/v1/nodes/${node}/reboot`]);
});

test("a raised for takes a node back to pending and its episode with it; an unchanged one keeps both", async () => {
  const { clinic, doctor, node, episode } = await startPaused(rebootOffline());
  expect((await reload(doctor)).status).toBe(200);
  expect(await timerOf(doctor, node)).toBe("firing");
  expect(await doctor.episode(node)).toMatchObject({ id: episode, state: "firing" });

  doctor.configure(clinic.prescribe([rebootOffline({ for: "1h" })]).text);
  expect((await reload(doctor)).status).toBe(200);
  expect(await timerOf(doctor, node)).toBe("pending");
  expect(await doctor.episode(node)).toMatchObject({ id: episode, state: "withdrawn" });
  expect((await doctor.look()).sum("proxywarden_config_last_reload_successful")).toBe(1);

  doctor.configure(clinic.prescribe([rebootOffline()]).text);
  expect((await reload(doctor)).status).toBe(200);
  await until("it fires again", async () => (await doctor.episode(node))?.state === "firing");
  expect((await doctor.episode(node))!.id).not.toBe(episode);
  // The pause was a person's, and no reload ends it; nothing else holds the node, for what was known still is.
  await until("the pause alone holds it", async () => (await doctor.reasons(node)).join() === "paused");
  expect(JSON.stringify(doctor.log.lines)).not.toContain("never said what time it is");
  expect(clinic.gate.posts).toEqual([]);
});

test("a mode changed from approve to enforce is in force at once: what waited lapses, and the same episode goes on", async () => {
  const { clinic, doctor, node, episode } = await startPaused(rebootOffline({ mode: "approve" }));
  await doctor.order("/api/v1/resume");
  await until("an action waits", async () => (await doctor.actions())[0]?.state === "awaiting");
  doctor.configure(clinic.prescribe([rebootOffline()]).text);
  expect((await reload(doctor)).status).toBe(200);
  await until("it is healed", async () => (await doctor.episode(node))?.state === "healed");
  expect((await doctor.episode(node))!.id).toBe(episode);
  expect(await doctor.actions()).toMatchObject([{ state: "lapsed" }, { outcome: "verified" }]);
  expect(clinic.gate.posts).toHaveLength(1);
});

test("a reload while a POST is under way waits for its answer, and it is posted once", async () => {
  const clinic = await startClinic();
  const [node] = clinic.nodes;
  const doctor = await startDoctor(clinic, clinic.prescribe([rebootOffline()]));
  let answer = () => {};
  const asked = new Promise<void>((resolve) => {
    answer = resolve;
  });
  clinic.gate.delay({ answered: () => asked });
  clinic.people.fallIll(node!, OUTAGE);
  await until("the POST is under way", () => clinic.gate.posts.length === 1);
  const reloading = reload(doctor);
  expect(await doctor.actions()).toMatchObject([{ state: "posting" }]);
  answer();
  expect((await reloading).status).toBe(200);
  await until("it is healed", async () => (await doctor.episode(node!))?.state === "healed");
  expect(await doctor.actions()).toMatchObject([{ outcome: "verified", in_doubt: false }]);
  expect(clinic.gate.posts).toHaveLength(1);
});
