import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createDaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import { RemediationRecords } from "../../../src/policy/remediation-records.ts";
import { EPISODE_SERIES_MAX, setEpisodeGauge } from "../../../src/remediation/status/gauges.ts";
import { type QuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { episodeOf } from "../../journal/arbitrary-changes.ts";

/** Returns the labels of the rendered series. */
async function seriesOf({ metrics }: Pick<QuietNetwork["daemon"], "metrics">): Promise<readonly string[]> {
  const page = await metrics.render("text");
  return [...page.matchAll(/^proxywarden_node_episode\{(.*)\} 1$/gm)].map(([, labels]) => labels!);
}

/** Returns the series of each minute, without repetitions. */
async function seriesOverTime(network: QuietNetwork, minutes: number): Promise<readonly string[]> {
  const seen: string[] = [];
  for (let minute = 0; minute < minutes; minute++) {
    await network.advance(MINUTE_MS);
    const shown = (await seriesOf(network.daemon)).map((labels) => labels.replace(/^node_id="[^"]+",/, "")).join(" ");
    if (shown !== seen.at(-1)) seen.push(shown);
  }
  return seen;
}

const series = (state: string, action: string, policy = "reboot-offline") =>
  `policy="${policy}",state="${state}",action="${action}"`;

test("an open episode has a series with its last action, and none once it is over", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [steps.disconnect, steps.reboot] })]),
  });
  expect((await seriesOverTime(network, 60)).filter((shown) => shown !== series("firing", "none"))).toEqual([
    "",
    series("acting", "disconnect"),
    series("acting", "reboot"),
    series("recovering", "reboot"),
    "",
  ]);
});

test("an episode of a dry run has a series with the action it would have sent, and a stopped daemon has none", async () => {
  const config = remediationConfig([rebootOffline({ mode: "dry_run", steps: [steps.reboot] })]);
  const { network } = await startWithFailedNode({ config });
  await network.advanceUntil(() => network.episodes().some(({ state }) => state === "acting"));
  expect(await seriesOverTime(network, 1)).toEqual([series("acting", "reboot")]);
  await network.stop();
  expect(await seriesOf(network.daemon)).toEqual([]);
});

test("at most a thousand episodes have series, those beyond firing first, and one that ends makes room", async () => {
  const records = new RemediationRecords({
    timers: [],
    episodes: [],
    actions: [],
    holds: [],
    facts: new Map(),
    lastNumber: 0,
  });
  const metrics = createDaemonMetrics({ process: false });
  const episode = (number: number, changed: Partial<Episode> = {}): Episode =>
    episodeOf(number, { policy: "offline", node: `node_${number}`, ...changed });
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
