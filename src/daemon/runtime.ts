import { SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { planMonth } from "../rate-limit/billing-month.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema/config.ts";
import { type Books, openBooks } from "../remediation/state/journaled-state.ts";
import { createWardenMetrics, type WardenMetrics } from "../metrics/daemon-metrics.ts";
import type { Bell, CallCounter, Clock, Log, Store } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { createPermitOffice, type PermitOffice } from "../api-client/rate-limiter.ts";
import { limitsOf } from "./collection-settings.ts";
import { createExposition, type Exposition } from "../web/scrape/scrape-endpoint.ts";
import { createFeed, type Feed } from "../web/api/event-log.ts";
import { createHistory, type History } from "../web/api/history.ts";

/** The strangers that the daemon is made of; a demo and a test bring others than a service does. */
export interface AppParts {
  readonly clock: Clock;
  readonly bell: Bell;
  readonly random: Random;
  readonly log: Log & { setLevel(level: Config["log"]["level"]): void };
  readonly version: string;
  /** Reads the configuration; the error is every problem, a line each. It should not block the event loop. */
  readConfig(): Result<LoadedConfig, readonly string[]> | Promise<Result<LoadedConfig, readonly string[]>>;
  readFile(path: string): Result<string, string>;
  openStore(folder: string): Result<Store, { readonly kind?: string; readonly message: string }>;
  /** A store that lives as long as the process: what is left where the real one is damaged. */
  createMemoryStore(): Store;
}

/** What outlives every reload: what was spent, and what is shown. */
export interface Foundation {
  readonly startedAt: EpochMs;
  readonly store: Store;
  readonly books: Books;
  readonly metrics: WardenMetrics;
  readonly exposition: Exposition;
  readonly office: PermitOffice;
  /** What was decided and done of late, for those who look on. */
  readonly feed: Feed;
  /** How the last hour went. */
  readonly history: History;
}

/** The fact that says how many calls were used before the store was made, and when their month began. */
export const USED_BEFORE = "month.used_before";

/** Opens the store and lays the rest upon it. */
export function layFoundation(parts: AppParts, config: Config): Result<Foundation, readonly string[]> {
  const { clock, log, version } = parts;
  const feed = createFeed();
  const opened = openOrLose(parts, config.state.path, feed);
  if (!opened.ok) return opened;
  const { store, books } = opened.value;
  const metrics = createWardenMetrics();
  metrics.set("proxywarden_build_info", { version }, 1);
  metrics.set("proxywarden_config_last_reload_successful", {}, 1);
  const office = createPermitOffice({
    limits: limitsOf(config),
    monthStartsOn: config.limits.month.starts_on,
    clock,
    random: parts.random,
    calls: withCallsUsedBefore(store, config, clock),
    log,
    onWait: (category, waitedMs) =>
      metrics.inc("proxywarden_ratelimit_wait_seconds_total", { category }, waitedMs / SECOND_MS),
    onForeign: (category, calls) => metrics.inc("proxywarden_foreign_calls_total", { category }, calls),
  });
  return ok({
    startedAt: clock.now(),
    store,
    books,
    metrics,
    exposition: createExposition({ clock, warden: metrics }),
    office,
    feed,
    history: createHistory(),
  });
}

/** What is remembered, and how it is written down. */
type Memory = Pick<Foundation, "store" | "books">;

/**
 * Opens the store, and reads the journal in it. One that is damaged must not end the watching: the daemon goes on without
 * it, shows what it sees and touches nothing, until a person has mended it. Whatever else is wrong is for a person to see
 * to at once.
 */
function openOrLose(parts: AppParts, folder: string, feed: Feed): Result<Memory, readonly string[]> {
  const { clock, log } = parts;
  const opened = parts.openStore(folder);
  if (!opened.ok) {
    const { kind, message } = opened.error;
    return kind === "damaged" ? ok(lose(parts, message, feed)) : fail([`state.path: ${message}`]);
  }
  const store = opened.value;
  try {
    const books = openBooks({
      journal: store.journal,
      clock,
      log,
      lost: null,
      assumesActions: true,
      onChange: feed.note,
    });
    return ok({ store, books });
  } catch (error) {
    store.close();
    const why = error instanceof Error ? error.message : String(error);
    return ok(
      lose(parts, `the journal in ${folder} can't be read (${why}); put a backup in its place, or move it away`, feed),
    );
  }
}

function lose({ clock, log, createMemoryStore }: AppParts, lost: string, feed: Feed): Memory {
  log.error({ problem: lost }, "the journal is damaged: no node is touched, and nothing outlives this process");
  const store = createMemoryStore();
  return { store, books: openBooks({ journal: store.journal, clock, log, lost, onChange: feed.note }) };
}

/**
 * Adds the calls that the configuration says were used before there was a store. They are taken down once, when the
 * store is new, for the month that it is then.
 */
function withCallsUsedBefore({ calls, facts }: Store, config: Config, clock: Clock): CallCounter {
  const { starts_on, used } = config.limits.month;
  if (facts.read(USED_BEFORE) === null) {
    facts.write(USED_BEFORE, JSON.stringify({ day: planMonth(clock.now(), starts_on).firstDay, used }));
  }
  const kept = facts.read(USED_BEFORE);
  return {
    since: (day) => calls.since(day) + usedBefore(kept, day),
    add: (day, count) => calls.add(day, count),
  };
}

/** Calls from that day (UTC) on that were made before there was a store, by what the fact of them says. */
export function usedBefore(fact: string | null, day: string): number {
  const before = JSON.parse(fact ?? '{"day":"","used":0}') as { day: string; used: number };
  return day <= before.day ? before.used : 0;
}
