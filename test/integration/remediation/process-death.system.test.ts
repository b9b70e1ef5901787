import { expect, test } from "vitest";
import type { ActionView } from "../../../src/web/api/row-views.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { waitUntil } from "../wait-until.ts";
import { rebootOffline, startCrashingDaemon, startDaemonFor, startHealingSetup } from "./healing-daemon.ts";
import type { PostHooks } from "./recording-proxy.ts";

/** Up to five daemons run in parallel, which is slow on a busy machine. */
const TEST_MS_MAX = 60_000;

/** When a daemon is killed, and the state of the service and journal after the next daemon has healed the node. */
interface CrashCase {
  /** The commit at which the process kills itself. */
  readonly at?: readonly [side: "before" | "after", boundary: string];
  /** Kills the process while its first POST is under way. */
  readonly whilePosting?: (kill: () => Promise<void>) => PostHooks;
  /** The bodies of all POSTs, in order. */
  readonly posts: readonly string[];
  /** The states of all actions in the journal, in order. */
  readonly actions: readonly string[];
  /** The time of a step, if it ends without success. */
  readonly within?: string;
  /** Only in the long form: test/remediation/execution kills the daemon at every commit on virtual time. */
  readonly isLong?: true;
}

const GRACEFUL = '{"force":false}';
const FORCED = '{"force":true}';

/** Sent once, and verified. */
const once = { posts: [GRACEFUL], actions: ["verified"] };

const actionState = ({ state, outcome, in_doubt, detail }: ActionView): string =>
  `${outcome ?? `${state}: ${detail}`}${in_doubt ? ", in doubt" : ""}`;

/** Kills a daemon while it heals a node, and starts the next one. Returns the result. */
async function crashAndRestart({ at, whilePosting, within = "5m" }: CrashCase) {
  const setup = await startHealingSetup();
  const [node] = setup.nodes;
  setup.interventions.startFailure(node!, { failureMode: "outage", remedy: "reboot" });
  const config = setup.writeConfig([rebootOffline({ for: "3s", clear_for: "3s", within })]);
  const crashing = startCrashingDaemon(config, ...(at ?? []));
  const kill = async () => {
    crashing.kill("SIGKILL");
    await crashing.ended;
  };
  if (whilePosting !== undefined) setup.serviceProxy.setHooks(whilePosting(kill));
  const { code, err } = await crashing.ended;
  if (code !== null) throw new Error(`the process was not killed:\n${err}`);
  setup.serviceProxy.setHooks({});
  const daemon = await startDaemonFor(setup, config);
  await waitUntil(
    () => `the episode is over: ${JSON.stringify(daemon.log.lines)}`,
    async () => (await daemon.app.remediation().historyOf(node!)).episodes[0]?.closedAt,
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

/** Expects that the node is healed in one episode, whenever the daemon was killed. */
async function expectHealedAfterCrash(cases: Readonly<Record<string, CrashCase>>): Promise<void> {
  const ends = await Promise.all(
    Object.entries(cases)
      .filter(([, { isLong = false }]) => isLongRun || !isLong)
      .map(async ([when, crash]) => ({ when, crash, end: await crashAndRestart(crash) })),
  );
  for (const { when, crash, end } of ends) {
    const { posts, actions } = crash;
    expect.soft({ when, ...end }).toEqual({
      when,
      posts,
      actions,
      paths: new Set(["/v1/nodes/{id}/reboot"]),
      episodes: ["healed"],
      status: "online",
    });
  }
}

test(
  "after kill -9 before a step is sent, its intent is withdrawn, and a new action is posted once",
  () => {
    const stale = "withdrawn: the daemon stopped before it was sent";
    const withdrawn = { posts: [GRACEFUL], actions: [stale, "verified"] };
    return expectHealedAfterCrash({
      "before an episode has begun": { at: ["before", "begun"], ...once, isLong: true },
      "after an episode has begun": { at: ["after", "begun"], ...once, isLong: true },
      "before the intent": { at: ["before", "intended"], ...once, isLong: true },
      "after the intent": { at: ["after", "intended"], ...withdrawn },
      "before `posting` is journaled": { at: ["before", "posting"], ...withdrawn },
    });
  },
  TEST_MS_MAX,
);

test(
  "after kill -9 while a step is being sent, it is in doubt, observation settles it, and it is never posted again",
  () => {
    const inDoubt = { posts: [GRACEFUL], actions: ["verified, in doubt"] };
    const nextStep = { actions: ["ineffective, in doubt", "verified"], within: "30s" };
    return expectHealedAfterCrash({
      "right before the POST is sent": { at: ["after", "posting"], posts: [FORCED], ...nextStep },
      "when the POST arrives, and is not executed": {
        whilePosting: (kill) => ({ arrived: () => kill().then(() => false) }),
        posts: [GRACEFUL, FORCED],
        ...nextStep,
      },
      "when the POST was executed, before the answer": { whilePosting: (kill) => ({ answered: kill }), ...inDoubt },
      "before the answer is journaled": { at: ["before", "sent"], ...inDoubt, isLong: true },
    });
  },
  TEST_MS_MAX,
);

test(
  "after kill -9 once a step was answered, it is verified, its episode is healed, and nothing is posted again",
  () =>
    expectHealedAfterCrash({
      "after the answer is journaled": { at: ["after", "sent"], ...once },
      "before the outcome": { at: ["before", "ended"], ...once, isLong: true },
      "after the outcome": { at: ["after", "ended"], ...once, isLong: true },
      "before the episode is closed": { at: ["before", "closed"], ...once, isLong: true },
      "after the episode is closed": { at: ["after", "closed"], ...once },
    }),
  TEST_MS_MAX,
);
