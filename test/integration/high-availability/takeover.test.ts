import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import { type PostgresCluster, startPostgres } from "../../harness/postgres-cluster.ts";
import { type MetricsPage, parseMetricsPage } from "../metrics-page.ts";
import { startScript, waitForStderr } from "../process.ts";
import { ADMIN_TOKEN, type HealingSetup, rebootOffline, startHealingSetup } from "../remediation/healing-daemon.ts";
import { waitUntil } from "../wait-until.ts";

const SPEED = 20;
/** In real time. */
const LEASE_MS: DurationMs = 2 * SECOND_MS;
/** Processes start slowly on a busy machine. */
const WAIT_MS: DurationMs = 90 * SECOND_MS;
const TEST_MS_MAX = 300_000;

let cluster: PostgresCluster;
let schemas = 0;
beforeAll(async () => {
  cluster = await startPostgres(["fsync = off"]);
}, 60_000);
afterAll(() => cluster.remove());

type Group = Awaited<ReturnType<typeof startGroup>>;
type Member = Group["daemons"][number];

/** Starts daemons of these names on one database, the first of which leads. */
async function startGroup(names: readonly string[], policy: Readonly<Record<string, unknown>> = {}) {
  const setup = await startHealingSetup({ speed: SPEED });
  schemas++;
  const url_file = setup.folder.write("postgres_url", cluster.url());
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration has the environment variable.
  const postgres = { url_file, schema: `group_${schemas}`, lease: "5s", instance: "${NAME}" };
  const { file } = setup.writeConfig([rebootOffline({ for: "3s", clear_for: "3s", within: "2m", ...policy })], {
    state: { postgres },
  });
  const daemons = [];
  for (const name of names) {
    const daemon = await startMember(file, name);
    if (daemons.length === 0)
      await waitUntil("the first daemon leads", async () => isLeader(await daemon.scrape()), WAIT_MS);
    daemons.push(daemon);
  }
  return { setup, daemons };
}

async function startMember(file: string, name: string) {
  const script = fileURLToPath(new URL("shared-daemon.ts", import.meta.url));
  const process = startScript(script, [file, String(SPEED), String(LEASE_MS)], { NAME: name });
  const [, url] = await waitForStderr(process, /"url":"(http:[^"]+)"/);
  const ask = (path: string, init?: RequestInit) => fetch(url! + path, init);
  return {
    ...process,
    name,
    ask,
    scrape: async () => parseMetricsPage(await (await ask("/metrics")).text()),
    get: async <T>(path: string) => (await (await ask(path)).json()) as T,
    order: async (path: string, body: object = {}) => {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
      const response = await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: response.status, json: (await response.json()) as { readonly message: string } };
    },
  };
}

const isLeader = (page: MetricsPage) => page.sum("proxywarden_leader") === 1;

/** Waits until a daemon leads and its fleet data is trusted. */
const untilItHeals = (daemon: Member) =>
  waitUntil(
    () => `${daemon.name} leads and trusts its data:\n${daemon.err()}`,
    async () => {
      const page = await daemon.scrape();
      return isLeader(page) && page.sum("proxywarden_trusted") === 1;
    },
    WAIT_MS,
  );

const failFirstNode = ({ setup }: { readonly setup: HealingSetup }): string => {
  const node = setup.nodes[0]!;
  setup.interventions.startFailure(node, { failureMode: "outage", remedy: "reboot" });
  return node;
};

interface ActionRow {
  readonly state: string;
  readonly outcome: string | null;
  readonly in_doubt: boolean;
}

const actionsOf = async (daemon: Member, node: string) =>
  (await daemon.get<{ readonly data: readonly ActionRow[] }>(`/api/v1/actions?node=${node}`)).data;

const untilHealed = (daemon: Member, node: string) =>
  waitUntil(
    () => `the node is healed:\n${daemon.err()}`,
    async () => (await actionsOf(daemon, node)).some(({ outcome }) => outcome === "verified"),
    WAIT_MS,
  );

test(
  "the leader exports the network, and a standby shows the journal, names the leader and forwards commands to it",
  async () => {
    const group = await startGroup(["one", "two"]);
    const [one, two] = group.daemons as [Member, Member];
    await untilItHeals(one);
    const node = failFirstNode(group);
    await untilHealed(one, node);
    const [leading, standing] = [await one.scrape(), await two.scrape()];
    expect([leading.sum("proxynet_nodes"), standing.sum("proxynet_nodes")]).toEqual([40, null]);
    expect([isLeader(leading), isLeader(standing)]).toEqual([true, false]);
    expect((await two.ask("/-/ready")).status).toBe(200);
    const leader = { is_this: false, name: "one", url: "http://one.example.net" };
    expect(await two.get("/api/v1/status")).toMatchObject({ nodes: null, leader });
    expect(await one.get("/api/v1/status")).toMatchObject({
      nodes: { total: 40 },
      leader: { ...leader, is_this: true },
    });
    expect(await actionsOf(two, node)).toEqual(await actionsOf(one, node));
    expect(await two.get(`/api/v1/nodes/${node}`)).toMatchObject({ known: false, actions: [{ outcome: "verified" }] });

    const reason = { reason: "deploy until 14:00" };
    const paused = await two.order("/api/v1/pause", reason);
    expect(paused.status).toBe(200);
    expect(paused.json.message).toMatch(
      /^paused: deploy until 14:00; .*; executed by one \(http:\/\/one\.example\.net\)$/,
    );
    const operator = "admin";
    expect(await one.get("/api/v1/status")).toMatchObject({ warden: { paused: { ...reason, operator } } });
    await waitUntil("the standby shows the pause", async () => {
      const { warden } = await two.get<{ readonly warden: { readonly paused: unknown } }>("/api/v1/status");
      return warden.paused;
    });
    expect(await two.order("/api/v1/actions/act-999/approve")).toMatchObject({ status: 404 });
    expect((await two.ask("/api/v1/pause", { method: "POST" })).status).toBe(401);
    one.kill("SIGSTOP");
    expect(await two.order("/api/v1/resume")).toMatchObject({ status: expect.toBeOneOf([200, 202]) });
  },
  TEST_MS_MAX,
);

test(
  "a leader that is killed during a POST is succeeded: the POST is in doubt, is verified, and is not sent again",
  async () => {
    const group = await startGroup(["one", "two"]);
    const [one, two] = group.daemons as [Member, Member];
    await untilItHeals(one);
    group.setup.serviceProxy.setHooks({
      async answered() {
        one.kill("SIGKILL");
        await one.ended;
      },
    });
    const node = failFirstNode(group);
    await waitUntil("the leader is killed", () => group.setup.serviceProxy.postRequests.length > 0, WAIT_MS);
    await one.ended;
    group.setup.serviceProxy.setHooks({});
    await untilHealed(two, node);
    expect(await actionsOf(two, node)).toMatchObject([{ outcome: "verified", in_doubt: true }]);
    expect(group.setup.serviceProxy.postRequests).toHaveLength(1);
  },
  TEST_MS_MAX,
);

test(
  "a leader that is stopped for longer than its lease during a POST goes on as a standby, and sends nothing more",
  async () => {
    const group = await startGroup(["one", "two"]);
    const [one, two] = group.daemons as [Member, Member];
    await untilItHeals(one);
    group.setup.serviceProxy.setHooks({
      async answered() {
        one.kill("SIGSTOP");
      },
    });
    const node = failFirstNode(group);
    await waitUntil("the POST is under way", () => group.setup.serviceProxy.postRequests.length > 0, WAIT_MS);
    await waitUntil("the other one leads", async () => isLeader(await two.scrape()), WAIT_MS);
    group.setup.serviceProxy.setHooks({});
    one.kill("SIGCONT");
    await waitUntil(
      () => `the first one stands by:\n${one.err()}`,
      async () => (await one.scrape()).sum("proxynet_nodes") === null,
      WAIT_MS,
    );
    await untilHealed(two, node);
    expect(group.setup.serviceProxy.postRequests).toHaveLength(1);
    expect(isLeader(await one.scrape())).toBe(false);
    // It leads again when the other one ends.
    two.kill("SIGTERM");
    expect((await two.ended).code).toBe(0);
    await untilItHeals(one);
  },
  TEST_MS_MAX,
);

test(
  "while the database is down the leader exports what it has and takes no step, and it heals once the database is back",
  async () => {
    const group = await startGroup(["one", "two"]);
    const [one, two] = group.daemons as [Member, Member];
    await untilItHeals(one);
    await cluster.stop("immediate");
    await waitUntil("no daemon leads", async () => !isLeader(await one.scrape()), WAIT_MS);
    const node = failFirstNode(group);
    expect((await one.scrape()).sum("proxynet_nodes")).not.toBeNull();
    expect([(await one.ask("/-/healthy")).status, (await two.ask("/-/healthy")).status]).toEqual([200, 200]);
    expect(group.setup.serviceProxy.postRequests).toEqual([]);
    await cluster.start();
    const leader = await waitUntil(
      "a daemon leads",
      async () => {
        for (const daemon of [one, two]) if (isLeader(await daemon.scrape())) return daemon;
        return null;
      },
      WAIT_MS,
    );
    await untilHealed(leader, node);
    expect(group.setup.serviceProxy.postRequests).toHaveLength(1);
  },
  TEST_MS_MAX,
);
