import { type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import type { LoadedConfig } from "../../../src/config/load.ts";
import type { Scenario } from "../../../src/config/schema/scenario.ts";
import { collectionSettingsOf } from "../../../src/daemon/config-resources.ts";
import { setLeaderGauges } from "../../../src/daemon/leader.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { networkFamilyNames } from "../../../src/metrics/families/network-families.ts";
import { billingMonthOf } from "../../../src/rate-limit/monthly-budget.ts";
import { createNetworkPage } from "../../harness/daemon/network-page.ts";
import {
  START_MS,
  startVirtualDaemon,
  statusSnapshotOf,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { type InputSeries, ScrapeHistory } from "./scrape-history.ts";

/** The labels of the daemon as a target. */
const TARGET_LABELS = 'job="proxywarden",instance="proxywarden:9713"';

/** Options of {@link scrapeSimulation}. */
interface SimulatedScrapes {
  readonly loaded: LoadedConfig;
  readonly scenario: Scenario;
  readonly durationMs: DurationMs;
  /** Interval of the scrapes. */
  readonly intervalMs: DurationMs;
  /** Calls of the month that were used before. Defaults to 0. */
  readonly usedCalls?: number;
  /** Names of the series to keep. */
  readonly series: ReadonlySet<string>;
}

/** Runs a configuration on virtual time over a simulated network, and scrapes it. */
export async function scrapeSimulation(options: SimulatedScrapes): Promise<readonly InputSeries[]> {
  const { loaded, scenario, durationMs, intervalMs, usedCalls = 0, series } = options;
  const { config, policies } = loaded;
  const store = createMemoryStateStore();
  store.calls.add(billingMonthOf(START_MS, config.limits.month.starts_on).firstDay, usedCalls);
  const daemon = await startVirtualDaemon({
    store,
    config: { ...config, policies },
    scenario,
    settings: collectionSettingsOf(config, policies),
  });
  daemon.metrics.set("proxywarden_config_last_reload_successful", {}, 1);
  daemon.metrics.set("proxywarden_leader", {}, 1);
  function setGauges(): void {
    const { clock, metrics, rateLimiter, serviceClock } = daemon;
    const serviceNow = serviceClock.timeAt(clock.monotonic());
    const clockSkewMs = serviceNow === null ? null : serviceNow - clock.now();
    setLeaderGauges(metrics, { ...statusSnapshotOf(daemon), clockSkewMs }, rateLimiter);
  }
  const history = new ScrapeHistory(series, TARGET_LABELS, START_MS / SECOND_MS);
  const networkPage = createNetworkPage(daemon, {
    ...config.export,
    deny: new Set(networkFamilyNames().filter((name) => !series.has(name))),
  });
  for (let at = 0; at <= durationMs; at += intervalMs) {
    setGauges();
    history.record(networkPage() + (await daemon.metrics.render("text")));
    await daemon.clock.advance(intervalMs);
  }
  await stopVirtualDaemon(daemon);
  return history.inputSeries();
}
