import { expect, test } from "vitest";
import type { ActionView } from "../../../src/web/api/row-views.ts";
import { rebootOffline, startClinic, startDoctor, startMortal } from "./healing-daemon.ts";
import type { Delays } from "./recording-proxy.ts";
import { until } from "../wait-until.ts";

/** Five daemons live and die side by side, which a busy machine takes its time for. */
const TEST_MS_MAX = 60_000;

/** How a daemon dies, and what is in the service and in the journal once the next one has healed the node. */
interface Death {
  /** Arguments of the process: it kills itself at a commit. */
  readonly at?: readonly [side: "before" | "after", boundary: string];
  /** Or it is killed while its first POST is under way. */
  readonly during?: (kill: () => Promise<void>) => Delays;
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

const standing = ({ state, outcome, in_doubt, detail }: ActionView): string =>
  `${outcome ?? `${state}: ${detail}`}${in_doubt ? ", in doubt" : ""}`;

/** A daemon that heals a node dies; the next one goes on. Gives how it all ended. */
async function dieAndGoOn({ at, during, within = "5m" }: Death) {
  const clinic = await startClinic();
  const [node] = clinic.nodes;
  clinic.people.fallIll(node!, { ailment: "outage", cure: "reboot" });
  const prescription = clinic.prescribe([rebootOffline({ for: "3s", clear_for: "3s", within })]);
  const mortal = startMortal(prescription, ...(at ?? []));
  const kill = async () => {
    mortal.kill("SIGKILL");
    await mortal.ended;
  };
  if (during !== undefined) clinic.gate.delay(during(kill));
  const { code, err } = await mortal.ended;
  if (code !== null) throw new Error(`it did not die:\n${err}`);
  clinic.gate.delay({});
  const doctor = await startDoctor(clinic, prescription);
  await until(
    () => `the episode is over: ${JSON.stringify(doctor.log.lines)}`,
    () => doctor.app.warden().explain(node!).episodes[0]?.closedAt,
  );
  const { episodes } = await doctor.explain(node!);
  return {
    posts: clinic.gate.posts.map(({ body }) => body),
    paths: new Set(clinic.gate.posts.map(({ path }) => path.replace(node!, "{id}"))),
    actions: (await doctor.actions()).map(standing),
    episodes: episodes.map(({ state }) => state),
    status: clinic.status(node!),
  };
}

/** Whatever a death left, in the end the node is healed, in one episode. */
async function expectHealed(deaths: Readonly<Record<string, Death>>): Promise<void> {
  const ends = await Promise.all(
    Object.entries(deaths).map(async ([when, death]) => ({ when, death, end: await dieAndGoOn(death) })),
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
    return expectHealed({
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
    return expectHealed({
      "when it is about to leave": { at: ["after", "posting"], posts: [FORCED], ...nextStep },
      "when it arrives, and nobody carries it out": {
        during: (kill) => ({ arrived: () => kill().then(() => false) }),
        posts: [GRACEFUL, FORCED],
        ...nextStep,
      },
      "when it was carried out, before the answer": { during: (kill) => ({ answered: kill }), ...unheard },
      "before the answer is written down": { at: ["before", "sent"], ...unheard },
    });
  },
  TEST_MS_MAX,
);

test(
  "kill -9 after a step was answered: it is still verified, its episode ends as healed, and nothing is posted again",
  () =>
    expectHealed({
      "after the answer is written down": { at: ["after", "sent"], ...once },
      "before the outcome": { at: ["before", "ended"], ...once },
      "after the outcome": { at: ["after", "ended"], ...once },
      "before the episode is closed": { at: ["before", "closed"], ...once },
      "after the episode is closed": { at: ["after", "closed"], ...once },
    }),
  TEST_MS_MAX,
);
