import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { TcpProxy } from "../../harness/servers/tcp-proxy.ts";
import { type MetricsPage, parseMetricsPage } from "../metrics-page.ts";
import { type RunningProcess, waitForStderr } from "../process.ts";
import { ADMIN_TOKEN } from "../remediation/healing-daemon.ts";
import { waitUntil } from "../wait-until.ts";

/** An action, as `GET /api/v1/actions` shows it. */
export interface ActionRow {
  readonly state: string;
  readonly outcome: string | null;
  readonly in_doubt: boolean;
}

/** One daemon of a group. */
export interface Member extends RunningProcess {
  readonly name: string;
  /** Its way to the database. */
  readonly database: TcpProxy;
  ask(path: string, init?: RequestInit): Promise<Response>;
  get<T>(path: string): Promise<T>;
  /** Sends an operator command. */
  sendCommand(
    path: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly json: { readonly message: string } }>;
  scrape(): Promise<MetricsPage>;
  /** Returns whether it leads, or false if it does not respond. */
  isLeading(): Promise<boolean>;
  /** Returns whether it leads, trusts its fleet data and can write the journal, so that it would act. */
  isHealing(): Promise<boolean>;
  /** Returns the actions on a node, without those that were withdrawn because a busy machine delayed the walks. */
  actionsOf(node: string): Promise<readonly ActionRow[]>;
}

/**
 * Processes start slowly on a busy machine. If one is so busy that a takeover takes more than 5 minutes of the group's
 * time, a wrong wall clock holds actions for an hour of it.
 */
const WAIT_MS: DurationMs = 4 * MINUTE_MS;
/** A daemon that is stopped does not answer. */
const ANSWER_MS_MAX: DurationMs = 2 * SECOND_MS;

/** Probes until there is a result, and returns it. Throws after {@link WAIT_MS}, with `what` was expected. */
export const until = <T>(what: () => string, probe: () => Promise<T | null | undefined | false> | T | null | false) =>
  waitUntil(what, probe, WAIT_MS);

/** Waits until a process has started, and returns it. `database`: its way to the database. Rejects if it ended. */
export async function startMember(name: string, child: RunningProcess, database: TcpProxy): Promise<Member> {
  const url = await Promise.race([
    waitForStderr(child, /"url":"(http:[^"]+)"/, WAIT_MS).then((match) => match[1]!),
    child.ended.then(({ err }) => Promise.reject(new Error(`${name} ended:\n${err}`))),
  ]);
  const ask: Member["ask"] = (path, init) => fetch(url + path, init);
  const scrape = async () =>
    parseMetricsPage(await (await ask("/metrics", { signal: AbortSignal.timeout(ANSWER_MS_MAX) })).text());
  const shows = (...metrics: readonly string[]) =>
    scrape().then(
      (page) => metrics.every((metric) => page.sum(metric) === 1),
      () => false,
    );
  const get: Member["get"] = async (path) =>
    (await ask(path, { signal: AbortSignal.timeout(5 * ANSWER_MS_MAX) })).json() as Promise<never>;
  return {
    ...child,
    name,
    database,
    ask,
    get,
    scrape,
    isLeading: () => shows("proxywarden_leader"),
    isHealing: () => shows("proxywarden_leader", "proxywarden_trusted", "proxywarden_journal_writable"),
    async sendCommand(path, body = {}) {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
      const response = await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: response.status, json: (await response.json()) as { readonly message: string } };
    },
    async actionsOf(node) {
      const { data } = await get<{ readonly data: readonly ActionRow[] }>(`/api/v1/actions?node=${node}`);
      return data.filter(({ state }) => state !== "withdrawn");
    },
  };
}
