import { expect, test } from "vitest";
import type { ActionView } from "../../../src/web/api/row-views.ts";
import { waitUntil } from "../wait-until.ts";
import { rebootOffline, startCrashingDaemon, startDaemonFor, startHealingSetup } from "./healing-daemon.ts";
import type { PostHooks } from "./recording-proxy.ts";

/** Five daemons live and die side by side, which a busy machine takes its time for. */
const TEST_MS_MAX = 60_000;

/** How a daemon dies, and what is in the service and in the journal once the next one has healed the node. */
interface CrashCase {
  /** Arguments of the process: it kills itself at a commit. */
  readonly at?: readonly [side: "before" | "after", boundary: string];
  /** Or it is killed while its first POST is under way. */
  readonly whilePosting?: (kill: () => Promise<void>) => PostHooks;
  /** What the service was told, in order. */
  readonly posts: readonly string[];
  /** How its actions stand in the journal, in order. */
  readonly actions: readonly string[];
  /** How long a step is waited for, where it is waited for in vain. */
  readonly within?: string;
}

const GRACEFUL = '{"force":false}';
const FORCED = '{"force":true}';

/** Sent once, and verified. */
const once = { posts: [GRACEFUL], actions: ["verified"] };

const actionState = ({ state, outcome, in_doubt, detail }: ActionView): string =>
  `${outcome ?? `${state}: ${detail}`}${in_doubt ? ", in doubt" : ""}`;

/** A daemon that heals a node dies; the next one goes on. Gives how it all ended. */
async function crashAndRestart({ at, whilePosting: during, within = "5m" }: CrashCase) {
  const setup = await startHealingSetup();
  const [node] = setup.nodes;
  setup.interventions.startFailure(node!, { failureMode: "outage", remedy: "reboot" });
  const config = setup.writeConfig([rebootOffline({ for: "3s", clear_for: "3s", within })]);
  const crashing = startCrashingDaemon(config, ...(at ?? []));
  const kill = async () => {
    crashing.kill("SIGKILL");
    await crashing.ended;
  };
  if (during !== undefined) setup.serviceProxy.setHooks(during(kill));
  const { code, err } = await crashing.ended;
  if (code !== null) throw new Error(`it did not die:\n${err}`);
  setup.serviceProxy.setHooks({});
  const daemon = await startDaemonFor(setup, config);
  await waitUntil(
    () => `the episode is over: ${JSON.stringify(daemon.log.lines)}`,
    () => daemon.app.remediation().explain(node!).episodes[0]?.closedAt,
  );
  const { episodes } = await daemon.explain(node!);
  return {
    posts: setup.serviceProxy.postRequests.map(({ body }) => body),
    paths: new Set(setup.serviceProxy.postRequests.map(({ path }) => path.replace(node!, "{id}"))),
    actions: (await daemon.actions()).map(actionState),
    episodes: episodes.map(({ state }) => state),
    status: setup.status(node!),
  };
}

/** Whatever a death left, in the end the node is healed, in one episode. */
async function expectHealedAfterCrash(deaths: Readonly<Record<string, CrashCase>>): Promise<void> {
  const ends = await Promise.all(
    Object.entries(deaths).map(async ([when, death]) => ({ when, death, end: await crashAndRestart(death) })),
  );
  for (const { when, death, end } of ends) {
    const { posts, actions } = death;
    expect.soft({ when, ...end }).toEqual({
      ...{ when, posts, actions, paths: new Set(["/v1/nodes/{id}/reboot"]), episodes: ["healed"], status: "online" },
    });
  }
}

test(
  "kill -9 before a step is sent: its intent is withdrawn, and what is decided anew is posted, once",
  () => {
    const stale = "withdrawn: the daemon stopped before it was sent";
    const withdrawn = { posts: [GRACEFUL], actions: [stale, "verified"] };
    return expectHealedAfterCrash({
      "before an episode has begun": { at: ["before", "begun"], ...once },
      "after an episode has begun": { at: ["after", "begun"], ...once },
      "before the intent": { at: ["before", "intended"], ...once },
      "after the intent": { at: ["after", "intended"], ...withdrawn },
      "before it is written that it is being sent": { at: ["before", "posting"], ...withdrawn },
    });
  },
  TEST_MS_MAX,
);

test(
  "kill -9 while a step is being sent: it is in doubt, what is seen settles it, and it is never posted again",
  () => {
    const unheard = { posts: [GRACEFUL], actions: ["verified, in doubt"] };
    const nextStep = { actions: ["ineffective, in doubt", "verified"], within: "30s" };
    return expectHealedAfterCrash({
      "when it is about to leave": { at: ["after", "posting"], posts: [FORCED], ...nextStep },
      "when it arrives, and nobody carries it out": {
        whilePosting: (kill) => ({ arrived: () => kill().then(() => false) }),
        posts: [GRACEFUL, FORCED],
        ...nextStep,
      },
      "when it was carried out, before the answer": { whilePosting: (kill) => ({ answered: kill }), ...unheard },
      "before the answer is written down": { at: ["before", "sent"], ...unheard },
    });
  },
  TEST_MS_MAX,
);

test(
  "kill -9 after a step was answered: it is still verified, its episode ends as healed, and nothing is posted again",
  () =>
    expectHealedAfterCrash({
      "after the answer is written down": { at: ["after", "sent"], ...once },
      "before the outcome": { at: ["before", "ended"], ...once },
      "after the outcome": { at: ["after", "ended"], ...once },
      "before the episode is closed": { at: ["before", "closed"], ...once },
      "after the episode is closed": { at: ["after", "closed"], ...once },
    }),
  TEST_MS_MAX,
);
