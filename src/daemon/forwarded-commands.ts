import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { errorMessage, fail, ok } from "../base/result.ts";
import type { Clock, ForwardedCommands, Log } from "../model/ports.ts";
import type { CommandReply, OperatorCommand } from "../model/remediation/operator-command.ts";
import { FailureState } from "../platform/log.ts";

/** How often to ask for the reply, and for how long, which is less than the timeout of the CLI. */
const REPLY_INTERVAL_MS: DurationMs = SECOND_MS / 4;
const REPLY_WAIT_MS: DurationMs = 5 * SECOND_MS;
/** How often the leader looks for commands. */
const TAKE_INTERVAL_MS: DurationMs = SECOND_MS / 2;

/**
 * Writes a command to the shared state, and returns the leader's reply. Fails with `journal` if it can't be written,
 * and with `unanswered` if there is no reply within {@link REPLY_WAIT_MS}. `leader` returns what messages call the
 * leader, which may change.
 */
export async function forwardCommand(
  command: OperatorCommand,
  leader: () => string,
  { forwardedCommands, clock }: Pick<ForwardedCommandDeps, "forwardedCommands" | "clock">,
): Promise<CommandReply> {
  let id: number;
  try {
    id = await forwardedCommands.submit(command);
  } catch (error) {
    // The database may have taken it if only the response was lost.
    const message = `forwarding the command to the leader, ${leader()}, failed: ${errorMessage(error)}; it may still be executed: check the status before you send it again`;
    return fail({ kind: "journal", message });
  }
  for (let waitedMs = 0; waitedMs < REPLY_WAIT_MS; waitedMs += REPLY_INTERVAL_MS) {
    await clock.sleep(REPLY_INTERVAL_MS);
    const reply = await forwardedCommands.reply(id).catch(() => null);
    if (reply !== null) return reply.ok ? ok(`${reply.value}; executed by the leader, ${leader()}`) : reply;
  }
  const message = `operator command ${id} was forwarded, and the leader, ${leader()}, has not replied yet; a leader may still execute it within 10 minutes: check the status before you send it again`;
  return fail({ kind: "unanswered", message });
}

/** Dependencies of {@link executeForwardedCommands}. */
interface ForwardedCommandDeps {
  readonly forwardedCommands: ForwardedCommands;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether this daemon leads now. */
  isLeader(): boolean;
  /** Executes a command under the active configuration. */
  execute(command: OperatorCommand): Promise<CommandReply>;
}

/**
 * Executes the commands that standbys forward, one after another. Returns a function that ends this, and that waits for
 * the command under way. A command that waited is rejected if it would undo what happened in the meantime. After a
 * crash between a command and its reply, the next leader executes the command again. This changes nothing more, except
 * that a pause or hold with a duration ends later.
 */
export function executeForwardedCommands(deps: ForwardedCommandDeps): () => Promise<void> {
  const stop = new AbortController();
  const running = executeUntilAborted(deps, stop.signal);
  return () => {
    stop.abort();
    return running;
  };
}

async function executeUntilAborted(deps: ForwardedCommandDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, isLeader } = deps;
  /** Replies that could not be written yet. Their commands are not executed again. */
  const unwritten = new Map<number, CommandReply>();
  const attempts = new FailureState();
  while (!signal.aborted) {
    try {
      if (isLeader()) {
        await executePending(deps, unwritten, signal);
        attempts.succeeded(log, {}, "forwarded commands are processed again");
      }
    } catch (error) {
      attempts.failed(log, { err: error }, "forwarded commands not processed; trying again");
    }
    await clock.sleep(TAKE_INTERVAL_MS, signal);
  }
}

async function executePending(
  deps: ForwardedCommandDeps,
  unwritten: Map<number, CommandReply>,
  signal: AbortSignal,
): Promise<void> {
  const { forwardedCommands, clock, isLeader } = deps;
  const pending = await forwardedCommands.pending();
  const now = clock.monotonic();
  for (const { ageMs, ...command } of pending) {
    if (signal.aborted || !isLeader()) return;
    const givenAt = now - ageMs;
    const reply = unwritten.get(command.id) ?? (await executeAndLog({ ...command, givenAt }, deps));
    unwritten.set(command.id, reply);
    await forwardedCommands.answer(command.id, reply);
    unwritten.delete(command.id);
  }
}

async function executeAndLog(
  forwarded: OperatorCommand,
  { execute, log }: ForwardedCommandDeps,
): Promise<CommandReply> {
  const { command, target, reason, operator } = forwarded;
  const reply = await execute(forwarded);
  const fields = { command, operator, target };
  if (reply.ok) log.info({ ...fields, reason }, "forwarded command executed");
  else log.warn({ ...fields, refusal: reply.error.message }, "forwarded command rejected");
  return reply;
}
