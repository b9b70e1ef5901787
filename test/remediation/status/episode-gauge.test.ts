import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createDaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import { createRemediationRecords } from "../../../src/policy/remediation-state.ts";
import { EPISODE_SERIES_MAX, setEpisodeGauge } from "../../../src/remediation/status/gauges.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

/** The labels of the series that are there, as the page has them. */
async function seriesOf({ metrics }: Pick<QuietNetwork["daemon"], "metrics">): Promise<readonly string[]> {
  const page = await metrics.render("text");
  return [...page.matchAll(/^proxywarden_node_episode\{(.*)\} 1$/gm)].map(([, labels]) => labels!);
}

/** What is shown each minute, each once in a row. */
async function watch(network: QuietNetwork, minutes: number): Promise<readonly string[]> {
  const seen: string[] = [];
  for (let minute = 0; minute < minutes; minute++) {
    await network.advance(MINUTE_MS);
    const shown = (await seriesOf(network.daemon)).map((labels) => labels.replace(/^node_id="[^"]+",/, "")).join(" ");
    if (shown !== seen.at(-1)) seen.push(shown);
  }
  return seen;
}

const as = (state: string, action: string, policy = "reboot-offline") =>
  `policy="${policy}",state="${state}",action="${action}"`;

test("a node's episode is shown from firing to its end, with the action sent last, and is gone when it is over", async () => {
  const network = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [steps.disconnect, steps.reboot] })]),
  });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  expect((await watch(network, 60)).filter((shown) => shown !== as("firing", "none"))).toEqual([
    "",
    as("acting", "disconnect"),
    as("acting", "reboot"),
    as("recovering", "reboot"),
    "",
  ]);
  await network.stop();
});

test("one of a dry run is shown as well, with what it would have done, and a stopped daemon shows none", async () => {
  const rules = remediationRules([rebootOffline({ mode: "dry_run", steps: [steps.reboot] })]);
  const network = await startQuietNetwork({ rules });
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => network.episodes().some(({ state }) => state === "acting"));
  expect(await watch(network, 1)).toEqual([as("acting", "reboot")]);
  await network.stop();
  expect(await seriesOf(network.daemon)).toEqual([]);
});

test("a thousand are shown, those beyond firing first, and one that ends makes room", async () => {
  const records = createRemediationRecords({
    timers: [],
    episodes: [],
    actions: [],
    holds: [],
    facts: new Map(),
    lastNumber: 0,
  });
  const metrics = createDaemonMetrics({ process: false });
  const episode = (number: number, changed: Partial<Episode> = {}): Episode => ({
    ...{ id: `ep-${number}`, policy: "offline", node: `node_${number}`, shadow: false, fingerprint: "" },
    ...{ country: "US", region: "us-east", state: "firing", stateAt: 0, openedAt: 0, closedAt: null },
    ...{ step: 0, acted: 0, failures: 0, retryAt: null, quarantine: null, healed: false },
    ...changed,
  });
  const write = (row: Episode) => records.apply([{ kind: "episode", row }]);
  for (let number = 0; number < EPISODE_SERIES_MAX + 1; number++) write(episode(number));
  const last = EPISODE_SERIES_MAX;
  const setGauge = () => setEpisodeGauge({ remediationState: { records }, metrics });
  const shows = async (number: number) =>
    (await seriesOf({ metrics })).some((each) => each.includes(`"node_${number}"`));

  setGauge();
  expect(await seriesOf({ metrics })).toHaveLength(EPISODE_SERIES_MAX);
  expect(await shows(last)).toBe(false);

  write(episode(last, { state: "quarantined" }));
  setGauge();
  expect(await seriesOf({ metrics })).toHaveLength(EPISODE_SERIES_MAX);
  expect([await shows(last), await shows(last - 1)]).toEqual([true, false]);

  write(episode(0, { state: "healed", closedAt: HOUR_MS }));
  setGauge();
  expect([await shows(0), await shows(last - 1)]).toEqual([false, true]);
});
