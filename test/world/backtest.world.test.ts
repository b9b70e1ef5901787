import { expect, test } from "vitest";
import { createIntegrationClient } from "../../src/api-client/integration-client.ts";
import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { runBacktest } from "../../src/cli/backtest/backtest.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { defaultScenario, demoScenario } from "../../src/simulator/default-scenarios.ts";
import { orThrow } from "../harness/or-throw.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../harness/policies.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { recordHistory } from "../integration/backtest/recorded-history.ts";
import { runPrometheus } from "../integration/prometheus/monitoring-servers.ts";

const DAYS = Number(process.env.WORLD_DAYS ?? 30);
const INTERVAL_MS: DurationMs = 2 * MINUTE_MS;
/** One interval each for a walk, a scrape and a point of the replay. */
const RESOLUTION_MS: DurationMs = 3 * INTERVAL_MS;
/**
 * A condition that ends within the resolution after `for` fires in one of the two runs only, and limits then differ for
 * a while.
 */
const AGREEMENT_MIN = 0.95;

/** Faults that operators repair within hours, and few that end by themselves. */
const rates = {
  ...demoScenario.rates,
  faultEveryMs: DAY_MS,
  selfHealing: 0.3,
  repairMs: defaultScenario.rates.repairMs,
};

const config = remediationConfig(
  [
    rebootOffline({ forMs: 15 * MINUTE_MS }),
    rebootOffline({
      name: "cool-hot-cpu",
      when: 'node.status == "online" && node.cpu_usage > 0.95',
      forMs: 25 * MINUTE_MS,
      steps: [steps.disconnect, steps.reboot],
    }),
  ],
  // With few nodes limits hold most actions, and which of two nodes goes first then depends on seconds.
  { ...withoutLimits, mode: "dry_run" },
);

interface Act {
  readonly at: number;
  readonly policy: string;
  readonly node: string;
  readonly step: number;
}

/** Returns the share of actions that another run has as well, within the resolution. */
function agreement(actions: readonly Act[], others: readonly Act[]): number {
  const isShared = ({ at, policy, node, step }: Act) =>
    others.some(
      (other) =>
        other.policy === policy &&
        other.node === node &&
        other.step === step &&
        Math.abs(other.at - at) <= RESOLUTION_MS,
    );
  return actions.filter(isShared).length / actions.length;
}

test(
  "a backtest of a simulated month takes the actions of the live run, within the resolution",
  async () => {
    const folder = createTempFolder();
    const history = await recordHistory(folder.path, {
      nodes: 20,
      durationMs: DAYS * DAY_MS,
      intervalMs: INTERVAL_MS,
      rates,
      config,
    });
    const { url } = await runPrometheus("{}", { data: history.data });
    const prometheus = createIntegrationClient({
      access: { url },
      clock: systemClock,
      agent: "test",
      timeoutMs: 2 * MINUTE_MS,
    });
    const result = orThrow(
      await runBacktest(
        {
          prometheus,
          matchers: "",
          fromMs: history.startMs,
          untilMs: history.endMs,
          stepMs: null,
          inForce: config,
          candidate: null,
          signal: new AbortController().signal,
        },
        () => {},
      ),
    );
    await prometheus.close();
    const live = history.decisions.filter(({ verdict }) => verdict === "act");
    const replayed = result.inForce.actions;
    console.log(
      `${DAYS} days: ${live.length} live actions, ${replayed.length} replayed; agreement ${agreement(live, replayed).toFixed(3)} and ${agreement(replayed, live).toFixed(3)}`,
    );
    expect(agreement(live, replayed)).toBeGreaterThan(AGREEMENT_MIN);
    expect(agreement(replayed, live)).toBeGreaterThan(AGREEMENT_MIN);
    expect(result.gaps).toEqual([]);
  },
  6 * HOUR_MS,
);
