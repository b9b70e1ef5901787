import type { Access } from "../../daemon/active-config.ts";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { planMonth } from "../../rate-limit/billing-month.ts";
import type { Config } from "../../config/schema/config.ts";
import { type Extent, extentKept } from "../../collectors/polling-plan.ts";
import { USED_BEFORE, usedBefore } from "../../daemon/runtime.ts";
import type { EpochMs } from "../../model/time.ts";
import { createClient } from "../../api-client/client.ts";
import { type Call, listNodes, listSessions } from "../../api-client/endpoints.ts";
import { createPermitOffice } from "../../api-client/rate-limiter.ts";
import { readPage } from "../../api-client/decoding/records.ts";
import { openStoreReadOnly } from "../../journal/reader.ts";
import { createMemoryStore } from "../../journal/sqlite.ts";
import { createSystemClock } from "../../platform/clock.ts";

/** Number of nodes and sessions given on the command line; absent: not given. */
export interface Told {
  readonly nodes?: number;
  readonly sessions?: number;
}

/** What a daemon has left in its state. */
export interface Past {
  /** What it saw last; null: it has never seen the network whole, or there was none. */
  readonly extent: Extent | null;
  /** Calls made in the plan's month. */
  readonly used: number;
}

/** Reads what a daemon on this configuration's state has left; it may be running. No state at all is no error. */
export function pastOf({ limits, state }: Config, now: EpochMs): Result<Past, readonly string[]> {
  const { starts_on, used } = limits.month;
  const opened = openStoreReadOnly(state.path);
  if (!opened.ok) {
    return opened.error.kind === "missing" ? ok({ extent: null, used }) : fail([opened.error.message]);
  }
  const store = opened.value;
  try {
    const { firstDay } = planMonth(now, starts_on);
    const extent = extentKept((key) => store.fact(key));
    const hasSeen = extent.nodePages > 0 || extent.sessionPages > 0;
    const before = usedBefore(store.fact(USED_BEFORE), firstDay);
    return ok({ extent: hasSeen ? extent : null, used: store.callsSince(firstDay) + before });
  } finally {
    store.close();
  }
}

/** Records of a list, and how many of them a page brings. */
interface Total {
  readonly count: number;
  readonly perPage: number;
}

/** Timeout of the service's response. */
const ANSWER_MS_MAX: DurationMs = 10 * SECOND_MS;

/** Asks the service how much there is: the first page of each list, which is two calls. */
export async function askExtent(
  { settings, secret, transport }: Access,
  agent: string,
  stop: AbortSignal,
): Promise<Result<Extent, readonly string[]>> {
  const clock = createSystemClock();
  const [random, nobody] = [Math.random, () => {}];
  const log = { debug: nobody, info: nobody, warn: nobody, error: nobody };
  const { limits, monthStartsOn, pageLimit } = settings;
  const { calls } = createMemoryStore();
  const client = createClient({
    ...{ clock, secret, transport, random, agent },
    office: createPermitOffice({ limits, monthStartsOn, clock, random, calls, log, onWait: nobody }),
    timeoutMs: ANSWER_MS_MAX,
    observer: { called: nobody, stated: nobody, refused: nobody },
  });
  async function totalOf(call: Call): Promise<Result<Total, string>> {
    const answer = await client.get(call, "walk", AbortSignal.any([stop, AbortSignal.timeout(ANSWER_MS_MAX)]));
    const page = answer.ok ? readPage(answer.value.json) : answer;
    if (!page.ok) return fail(`can't read the size of the network from the service: ${page.error.message}`);
    const { records, total } = page.value;
    return ok({ count: total, perPage: total > records.length && records.length > 0 ? records.length : pageLimit });
  }
  const first = { page: 1, limit: pageLimit };
  const [nodes, sessions] = await Promise.all([totalOf(listNodes(first)), totalOf(listSessions(first))]);
  if (!nodes.ok) return fail([`${nodes.error}; or pass --nodes N --sessions N`]);
  if (!sessions.ok) return fail([`${sessions.error}; or pass --nodes N --sessions N`]);
  return ok(extentOf({ nodes: nodes.value, sessions: sessions.value }));
}

/** The extent that is told, in pages as large as those that were seen, or as are asked for. */
export function toldExtent(told: Told, seen: Extent | null, pageLimit: number): Extent {
  const size = (count: number | undefined, pages: number | undefined): number =>
    count !== undefined && pages !== undefined && pages > 1 ? Math.ceil(count / pages) : pageLimit;
  return extentOf({
    nodes: { count: told.nodes ?? seen?.nodes ?? 0, perPage: size(seen?.nodes, seen?.nodePages) },
    sessions: { count: told.sessions ?? seen?.sessions ?? 0, perPage: size(seen?.sessions, seen?.sessionPages) },
  });
}

const extentOf = ({ nodes, sessions }: { readonly nodes: Total; readonly sessions: Total }): Extent => ({
  nodes: nodes.count,
  nodePages: Math.ceil(nodes.count / nodes.perPage),
  sessions: sessions.count,
  sessionPages: Math.ceil(sessions.count / sessions.perPage),
});
