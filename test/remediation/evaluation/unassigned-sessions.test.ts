import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { listsOnlySettings, type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { everyMinuteSettings } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../harness/policies.ts";
import { changingRecords } from "../../harness/simulator/changed-responses.ts";

type Session = Readonly<Record<string, unknown>>;

/** Runs a policy on nodes without sessions for five times its `for`. Each node has about twenty. */
async function rebootIdle(change: (session: Session, index: number) => Session): Promise<QuietNetwork> {
  const policy = rebootOffline({ when: 'node.status == "online" && sessions.total == 0' });
  const network = await startQuietNetwork({
    config: remediationConfig([policy], withoutLimits),
    scenario: { nodes: 20, sessions: 400 },
    settings: { schedules: { ...listsOnlySettings.schedules!, sessions: everyMinuteSettings.schedules.sessions } },
    wrapTransport: changingRecords("sessions", change),
  });
  await network.advance(25 * MINUTE_MS);
  return network;
}

const unassigned: readonly (readonly [what: string, change: (session: Session, index: number) => Session])[] = [
  ["name no node", (session) => ({ ...session, node_id: null })],
  ["name their node differently from the list", (session) => ({ ...session, node_id: `host-${session.node_id}` })],
  ["can't be read", ({ id: _, ...session }) => session],
  ["name no node, one in five of them", (session, index) => (index % 5 === 0 ? { ...session, node_id: "" } : session)],
];

test.each(unassigned)("no node is taken for idle if the sessions %s", async (_, change) => {
  const network = await rebootIdle(change);
  expect(network.postCount()).toBe(0);
  const [explained] = network.explain(network.nodes()[0]!).policies;
  expect(explained).toMatchObject({
    verdict: "unknown",
    unknowns: [{ field: "sessions.total", why: "unassigned" }],
  });
});

test("a few sessions that name no node, and those that are being established, leave the others known", async () => {
  const network = await rebootIdle((session, index) =>
    index % 20 === 0 || session.status === "connecting" ? { ...session, node_id: null } : session,
  );
  await network.advance(MINUTE_MS);
  const [explained] = network.explain(network.nodes()[0]!).policies;
  expect(explained).toMatchObject({ verdict: "false", unknowns: [] });
});
