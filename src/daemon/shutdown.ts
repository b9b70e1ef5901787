import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { WebServer } from "../web/http/server.ts";
import type { RoleSwitch } from "./role-switch.ts";
import type { Runtime } from "./runtime.ts";

/**
 * Time that each part of a shutdown may take. The active configuration stops first. Then the web server closes while
 * the state is handed over. The state closes last. After a SIGTERM the process exits within 10 s.
 */
export const SHUTDOWN_BUDGET = {
  /** For stopping the active configuration, including a reload or a change of leadership that is under way. */
  activeMs: 7.75 * SECOND_MS,
  /** Part of `activeMs` for the response to a POST in flight; after that it is aborted and journaled as in doubt. */
  postMs: 7 * SECOND_MS,
  /** Part of `activeMs`, after `postMs`, for queued notifications. */
  notificationsMs: 0.5 * SECOND_MS,
  /** For HTTP responses under way. */
  webMs: 1.5 * SECOND_MS,
  /**
   * For what is still to be written to the state, and for releasing the lease; what is left of `activeMs` is added,
   * since the database may be slow. Runs at the same time as `webMs`.
   */
  handOverMs: SECOND_MS,
  /** For closing the state. */
  closeMs: 0.5 * SECOND_MS,
};

/**
 * Stops the daemon, in reverse order of the start. `src/main.ts` handles SIGTERM and SIGINT, and `src/cli/run.ts` then
 * calls `Daemon.stop`, which calls this. `reloading` is the reload under way, which never rejects, and may replace the
 * web server.
 */
export async function shutDown(
  reloading: Promise<unknown>,
  roleSwitch: RoleSwitch,
  web: () => WebServer,
  deps: Runtime,
): Promise<void> {
  const { activeMs, webMs, handOverMs, closeMs } = SHUTDOWN_BUDGET;
  const startedAt = deps.clock.monotonic();
  const stopping = reloading.then(() => roleSwitch.stop(startedAt));
  await waitUpTo(activeMs, "active configuration", stopping, deps);
  const leftMs = Math.max(0, startedAt + activeMs - deps.clock.monotonic());
  const handingOver = waitUpTo(leftMs + handOverMs, "handover of the state", roleSwitch.handOver(), deps);
  await Promise.all([handingOver, web().close(webMs)]);
  await waitUpTo(closeMs, "state", roleSwitch.close(), deps);
}

/** Waits for a part of the shutdown, but at most `ms`, because a database that does not answer must not delay it. */
async function waitUpTo(ms: DurationMs, part: string, work: Promise<void>, { clock, log }: Runtime): Promise<void> {
  const done = new AbortController();
  const logged = work.catch((error: unknown) => log.warn({ part, err: error }, "part of the shutdown failed"));
  const expired = clock.sleep(ms, done.signal).then(() => {
    if (!done.signal.aborted) log.warn({ part, after_ms: ms }, "part of the shutdown not finished in time");
  });
  await Promise.race([logged, expired]);
  done.abort();
}
