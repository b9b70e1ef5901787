import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createDaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import { RemediationRecords } from "../../../src/policy/remediation-records.ts";
import { createEpisodeGauge, EPISODE_SERIES_MAX } from "../../../src/remediation/status/episode-gauge.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

/** The labels of the series that are there, as the page has them. */
async function seriesOf({ metrics }: Pick<QuietNetwork["daemon"], "metrics">): Promise<readonly string[]> {
  const page = await metrics.render("text");
  return [...page.matchAll(/^proxywarden_node_episode\{(.*)\} 1$/gm)].map(([, labels]) => labels!);
}

/** What is shown each minute, each once in a row. */
async function watch(context: QuietNetwork, minutes: number): Promise<readonly string[]> {
  const seen: string[] = [];
  for (let minute = 0; minute < minutes; minute++) {
    await context.advance(MINUTE_MS);
    const shown = (await seriesOf(context.daemon)).map((labels) => labels.replace(/^node_id="[^"]+",/, "")).join(" ");
    if (shown !== seen.at(-1)) seen.push(shown);
  }
  return seen;
}

const as = (state: string, action: string, policy = "reboot-offline") =>
  `policy="${policy}",state="${state}",action="${action}"`;

test("a node's episode is shown from firing to its end, with the action sent last, and is gone when it is over", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [steps.disconnect, steps.reboot] })]),
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  expect((await watch(context, 60)).filter((shown) => shown !== as("firing", "none"))).toEqual([
    "",
    as("acting", "disconnect"),
    as("acting", "reboot"),
    as("recovering", "reboot"),
    "",
  ]);
  await context.stop();
});

test("one of a dry run is shown as well, with what it would have done, and a stopped daemon shows none", async () => {
  const rules = remediationRules([rebootOffline({ mode: "dry_run", steps: [steps.reboot] })]);
  const context = await startQuietNetwork({ rules });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advanceUntil(() => context.episodes().some(({ state }) => state === "acting"));
  expect(await watch(context, 1)).toEqual([as("acting", "reboot")]);
  await context.stop();
  expect(await seriesOf(context.daemon)).toEqual([]);
});

test("a thousand are shown, those beyond firing first, and one that ends makes room", async () => {
  const records = new RemediationRecords({
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
  const gauge = createEpisodeGauge({ remediationState: { records }, metrics });
  const shows = async (number: number) =>
    (await seriesOf({ metrics })).some((each) => each.includes(`"node_${number}"`));

  gauge.show();
  expect(await seriesOf({ metrics })).toHaveLength(EPISODE_SERIES_MAX);
  expect(await shows(last)).toBe(false);

  write(episode(last, { state: "quarantined" }));
  gauge.show();
  expect(await seriesOf({ metrics })).toHaveLength(EPISODE_SERIES_MAX);
  expect([await shows(last), await shows(last - 1)]).toEqual([true, false]);

  write(episode(0, { state: "healed", closedAt: HOUR_MS }));
  gauge.show();
  expect([await shows(0), await shows(last - 1)]).toEqual([false, true]);
});
