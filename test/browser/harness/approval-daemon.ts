import {
  type HealingSetup,
  type RunningDaemon,
  rebootOffline,
  startDaemonFor,
  startHealingSetup,
} from "../../integration/remediation/healing-daemon.ts";
import { waitUntil } from "../../integration/wait-until.ts";
import { openPage } from "./page-visit.ts";

/** A failure of a node, which a reboot ends. */
export const OUTAGE = { failureMode: "outage", remedy: "reboot" } as const;

/** Returns the name of a node of the simulated service. */
export const nodeName = ({ network }: HealingSetup, node: string): string =>
  network.service.network.fleet.nodes.find(({ id }) => id === node)!.name;

/** Opens the page of a daemon in which every action needs approval. */
export async function startWithApproval() {
  const setup = await startHealingSetup();
  const config = setup.writeConfig([rebootOffline({ mode: "approve" })], {
    safety: { mode: "enforce", storm_cooldown: "0s", trust: { warmup_walks: 1 } },
  });
  const daemon = await startDaemonFor(setup, config);
  await waitUntil("fleet data is trusted", async () => (await daemon.scrape()).sum("proxywarden_trusted") === 1);
  return { setup, daemon, ...(await openPage(daemon.app.url())) };
}

/** Waits until an action on a node waits for approval. */
export const pendingApproval = (daemon: RunningDaemon, node: string) =>
  waitUntil(`an action on ${node} waits for approval`, async () =>
    (await daemon.actions()).find((action) => action.node === node && action.state === "awaiting"),
  );
