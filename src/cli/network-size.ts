import type { CallAttemptDeps } from "../api-client/call-attempt.ts";
import { createApiClient } from "../api-client/client.ts";
import { decodePage } from "../api-client/decoding/records.ts";
import { type Call, listNodesCall, listSessionsCall, type PageQuery } from "../api-client/endpoints.ts";
import { isRequestRejected } from "../api-client/errors.ts";
import { userAgentOf } from "../api-client/integration-client.ts";
import { smallerPageLimits } from "../api-client/pagination/list-walk.ts";
import { RateLimiter } from "../api-client/rate-limiter.ts";
import { ServiceClock } from "../api-client/service-clock.ts";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { ok, type Result } from "../base/result.ts";
import { NETWORK_SIZE_FACT, type NetworkSize, storedNetworkSize } from "../collectors/polling-plan.ts";
import type { Config } from "../config/schema/config.ts";
import type { ConfigResources } from "../daemon/config-resources.ts";
import { readMonthCalls } from "../daemon/leadership-term.ts";
import type { StoreFailure } from "../journal/open-failure.ts";
import { createMemoryStateStore } from "../journal/sqlite/store.ts";
import type { StateReader } from "../journal/state-export.ts";
import { systemClock } from "../platform/clock.ts";
import { silentLog } from "../platform/log.ts";
import { type BillingMonth, billingMonthOf, type MonthUsage } from "../rate-limit/monthly-budget.ts";
import { type CommandContext, CommandFailure } from "./context.ts";
import { withProgress } from "./output/progress.ts";
import { readConfiguredState } from "./state/state-store.ts";

/** Numbers of nodes and sessions given on the command line. Absent if not given. */
export interface GivenCounts {
  readonly nodes?: number;
  readonly sessions?: number;
}

/** Network size and API calls from the state of a daemon. */
export interface StoredState {
  /** The size last seen, or null if no complete walk of a list with records was recorded. */
  readonly networkSize: NetworkSize | null;
  /** The plan's month: what is left of it, and the API calls made in it. */
  readonly month: MonthUsage;
}

/**
 * Reads the state of this configuration's daemon, which may be running. A missing state is not an error. Throws
 * {@link CommandFailure} when the process is asked to stop.
 */
export async function readStoredState(
  { limits, state }: Config,
  { err, stop }: Pick<CommandContext, "err" | "stop">,
): Promise<Result<StoredState, StoreFailure>> {
  const { starts_on, used } = limits.month;
  const now = systemClock.now();
  const monthUsage = ({ startMs, endMs }: BillingMonth, callsUsed: number): MonthUsage => ({
    callsUsed,
    leftMs: endMs - Math.max(now, startMs),
  });
  async function read(store: StateReader): Promise<StoredState> {
    const facts = await store.facts();
    const size = storedNetworkSize(facts.get(NETWORK_SIZE_FACT) ?? null);
    const hasSeen = size.nodePages > 0 || size.sessionPages > 0;
    const { month, calls } = await readMonthCalls(facts, (day) => store.callsSince(day), now, starts_on);
    return { networkSize: hasSeen ? size : null, month: monthUsage(month, calls) };
  }
  const stored = await withProgress("reading the journal", readConfiguredState(state, read, stop), { err });
  if (stored.ok || stored.error.kind !== "missing") return stored;
  return ok({ networkSize: null, month: monthUsage(billingMonthOf(now, starts_on), used) });
}

/** Timeout of each call to the service, and of reading the size of a list. */
const SERVICE_TIMEOUT_MS: DurationMs = 10 * SECOND_MS;
const NO_RESPONSE = `no successful response within ${SERVICE_TIMEOUT_MS / SECOND_MS} s`;

/**
 * Returns what a command needs to call the service within the configured rate limits. Calls made earlier in the month are
 * not taken into account. The command's calls are not counted in the state of the daemon, which sees them as external
 * usage.
 */
export function createServiceAccess(
  { settings, secret, transport }: ConfigResources,
  version: string,
): CallAttemptDeps & { readonly random: () => number } {
  return {
    clock: systemClock,
    secret,
    transport,
    random: Math.random,
    agent: userAgentOf(version),
    rateLimiter: new RateLimiter({
      limits: settings.limits,
      monthStartsOn: settings.monthStartsOn,
      clock: systemClock,
      random: Math.random,
      calls: createMemoryStateStore().calls,
      log: silentLog,
    }),
    timeoutMs: SERVICE_TIMEOUT_MS,
    serviceClock: new ServiceClock(),
  };
}

/**
 * Asks the service for the network's size, by reading the first page of each list. This takes two calls, and more if one
 * is retried, or its page size or number is rejected. Throws {@link CommandFailure} if a page can't be read.
 */
export async function queryNetworkSize(
  resources: ConfigResources,
  version: string,
  stop: AbortSignal,
): Promise<NetworkSize> {
  const { pageLimit } = resources.settings;
  const client = createApiClient(createServiceAccess(resources, version));
  async function sizeOf(listCall: (query: PageQuery) => Call) {
    const timeout = AbortSignal.timeout(SERVICE_TIMEOUT_MS);
    const signal = AbortSignal.any([stop, timeout]);
    const readPage = async (page: number, limit: number) => {
      const answer = await client.get(listCall({ page, limit }), "walk", signal);
      return answer.ok ? decodePage(answer.value.json) : answer;
    };
    let limit = pageLimit;
    let page = await readPage(1, limit);
    for (const smaller of smallerPageLimits(pageLimit)) {
      if (page.ok || page.error.kind !== "client_error") break;
      limit = smaller;
      page = await readPage(1, limit);
    }
    // A service that counts pages from 0 may reject page 1 of a short list, in every size or only in larger ones.
    if (page.ok && limit < pageLimit && page.value.total <= pageLimit) {
      const zero = await readPage(0, pageLimit);
      if (zero.ok && zero.value.records.length > 0) {
        limit = pageLimit;
        page = zero;
      }
    } else if (!page.ok && isRequestRejected(page.error)) {
      const zero = await readPage(0, limit);
      if (zero.ok) page = zero;
    }
    if (!page.ok) {
      const reason = timeout.aborted ? NO_RESPONSE : page.error.message;
      throw new CommandFailure(
        `can't read the size of the network from the service: ${reason}; to plan without it, pass --nodes N --sessions N`,
      );
    }
    const { records, total } = page.value;
    const perPage = total > records.length && records.length > 0 ? records.length : limit;
    return { total, pages: Math.ceil(total / perPage) };
  }
  const [nodes, sessions] = await Promise.all([sizeOf(listNodesCall), sizeOf(listSessionsCall)]);
  return { nodes: nodes.total, nodePages: nodes.pages, sessions: sessions.total, sessionPages: sessions.pages };
}

/**
 * Returns the network size from the given counts, or from those seen if they are not given. Pages hold `pageLimit` records,
 * or fewer if more pages were seen.
 */
export function givenNetworkSize(given: GivenCounts, seen: NetworkSize | null, pageLimit: number): NetworkSize {
  const { nodes = seen?.nodes ?? 0, sessions = seen?.sessions ?? 0 } = given;
  const pagesOf = (count: number, seenCount = 0, seenPages = 0) =>
    Math.ceil(count / (seenPages > Math.ceil(seenCount / pageLimit) ? Math.ceil(seenCount / seenPages) : pageLimit));
  return {
    nodes,
    nodePages: pagesOf(nodes, seen?.nodes, seen?.nodePages),
    sessions,
    sessionPages: pagesOf(sessions, seen?.sessions, seen?.sessionPages),
  };
}

/** Source of a size: the command line, the daemon's state, or the service. */
export type CountSource = "options" | "state" | "service";

/** Number of nodes in a fleet, and its source. */
export interface FleetSize {
  readonly nodes: number;
  readonly source: CountSource;
}

/** Returns the given size, or else that of a probe, or else that in the daemon's state. Returns null if none is known. */
export function fleetSize(
  given: number | undefined,
  probed: number | null,
  stored: StoredState | null,
): FleetSize | null {
  if (given !== undefined) return { nodes: given, source: "options" };
  if (probed !== null && probed > 0) return { nodes: probed, source: "service" };
  const nodes = stored?.networkSize?.nodes ?? 0;
  return nodes === 0 ? null : { nodes, source: "state" };
}
