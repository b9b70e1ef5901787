import { expect, test } from "vitest";
import { shareDaemonPair, TEST_MS_MAX } from "./daemon-pair.ts";
import { until } from "./member.ts";

const pair = shareDaemonPair();

test(
  "the leader exports the network, and a standby shows the journal, names the leader and forwards commands to it",
  async () => {
    const { group } = pair();
    const { leader, standby } = await pair().leaderAndStandby();
    const node = group.failNode();
    await group.untilHealed(node);
    const [leading, standing] = [await leader.scrape(), await standby.scrape()];
    expect([leading.sum("proxynet_nodes"), standing.sum("proxynet_nodes")]).toEqual([60, null]);
    expect([leading.sum("proxywarden_leader"), standing.sum("proxywarden_leader")]).toEqual([1, 0]);
    expect((await standby.ask("/-/ready")).status).toBe(200);
    const { name } = leader;
    const url = `http://${name}.example.net`;
    expect(await standby.get("/api/v1/status")).toMatchObject({ nodes: null, leader: { is_this: false, name, url } });
    expect(await leader.get("/api/v1/status")).toMatchObject({ nodes: { total: 60 }, leader: { is_this: true, name } });
    // The journal has no names of nodes.
    const journaled = (await leader.actionsOf(node)).map((action) => ({ ...action, name: null }));
    expect(await standby.actionsOf(node)).toEqual(journaled);
    expect(await standby.get(`/api/v1/nodes/${node}`)).toMatchObject({ known: false, decisions: expect.any(Array) });

    const reason = { reason: "deploy until 14:00" };
    const paused = await standby.sendCommand("/api/v1/pause", reason);
    expect(paused.status).toBe(200);
    expect(paused.json.message).toMatch(
      new RegExp(`^paused: deploy until 14:00; .*; executed by the leader, ${name} \\(${url}\\)$`),
    );
    const operator = "admin";
    expect(await leader.get("/api/v1/status")).toMatchObject({ remediation: { paused: { ...reason, operator } } });
    await until(
      () => "the standby shows the pause",
      async () => {
        const { remediation } = await standby.get<{ readonly remediation: { readonly paused: unknown } }>(
          "/api/v1/status",
        );
        return remediation.paused;
      },
    );
    expect(await standby.sendCommand("/api/v1/actions/act-999/approve")).toMatchObject({ status: 404 });
    expect((await standby.ask("/api/v1/pause", { method: "POST" })).status).toBe(401);
    leader.kill("SIGSTOP");
    // Answered with the id of the order, or by this daemon itself if it has taken over by then.
    expect([200, 202]).toContain((await standby.sendCommand("/api/v1/resume")).status);
    leader.kill("SIGCONT");
  },
  TEST_MS_MAX,
);

test(
  "a leader that is killed during a POST is succeeded: the POST is in doubt, is verified, and is not sent again",
  async () => {
    const { group } = pair();
    const { leader, standby } = await pair().leaderAndStandby();
    group.setHooks({
      async answered() {
        leader.kill("SIGKILL");
        await leader.ended;
      },
    });
    const node = group.failNode();
    await leader.ended;
    group.setHooks({});
    await group.untilHealed(node);
    expect(await standby.actionsOf(node)).toMatchObject([{ outcome: "verified", in_doubt: true }]);
    expect(pair().postsTo(node)).toHaveLength(1);
  },
  TEST_MS_MAX,
);
