import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { errorMessage, fail, ok } from "../base/result.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { CommandReply } from "../model/remediation/operator-command.ts";
import type { ForwardedOrder, ForwardedOrders } from "../model/shared-state.ts";
import type { OperatorCommands } from "../remediation/status/views.ts";
import { onBehalfOf, operatorCommandTable } from "../web/api/operator-commands.ts";

/** Dependencies of {@link ForwardingCommands}. */
export interface ForwardingDeps {
  readonly orders: ForwardedOrders;
  readonly clock: Clock;
  /** Names the leader in replies, after "the leader,". */
  leader(): string;
}

/** How often to ask for the reply, and for how long, which is less than the timeout of the CLI. */
const REPLY_INTERVAL_MS: DurationMs = SECOND_MS / 4;
const REPLY_WAIT_MS: DurationMs = 5 * SECOND_MS;
/** The leader looks for commands this often. */
const TAKE_INTERVAL_MS: DurationMs = SECOND_MS / 2;

/** The operator commands of a standby, which writes them to the shared state and returns the leader's reply. */
export class ForwardingCommands implements OperatorCommands {
  readonly #deps: ForwardingDeps;
  readonly #operator: string | null;

  constructor(deps: ForwardingDeps, operator: string | null = null) {
    this.#deps = deps;
    this.#operator = operator;
  }

  as(operator: string): OperatorCommands {
    return new ForwardingCommands(this.#deps, operator);
  }

  pause = (reason: string, forMs?: DurationMs | null) => this.#forward("pause", "", reason, forMs);
  resume = () => this.#forward("resume");
  approve = (action: string) => this.#forward("approve", action);
  reject = (action: string, reason: string) => this.#forward("reject", action, reason);
  hold = (node: string, reason: string, forMs?: DurationMs | null) => this.#forward("hold", node, reason, forMs);
  release = (node: string) => this.#forward("release", node);
  resetBreaker = () => this.#forward("reset-breaker");
  acceptInventory = () => this.#forward("accept-inventory");

  /**
   * Does nothing, because a reload concerns only this daemon, and only the leader writes the journal. The log records
   * it.
   */
  noteReload(): void {}

  async #forward(
    command: ForwardedOrder["command"],
    target = "",
    reason = "",
    forMs: DurationMs | null = null,
  ): Promise<CommandReply> {
    const { orders, clock } = this.#deps;
    const leader = this.#deps.leader();
    let id: number;
    try {
      id = await orders.submit({ command, target, reason, forMs, operator: this.#operator });
    } catch (error) {
      const message = `the command can't be forwarded to the leader, ${leader}: ${errorMessage(error)}; nothing has changed`;
      return fail({ kind: "journal", message });
    }
    for (let waitedMs = 0; waitedMs < REPLY_WAIT_MS; waitedMs += REPLY_INTERVAL_MS) {
      await clock.sleep(REPLY_INTERVAL_MS);
      const reply = await orders.reply(id).catch(() => null);
      if (reply !== null) return reply.ok ? ok(`${reply.value}; executed by the leader, ${leader}`) : reply;
    }
    const message = `operator command ${id} was forwarded, and the leader, ${leader}, has not replied yet; the command is executed when a leader takes it: check the status before you send it again`;
    return fail({ kind: "unanswered", message });
  }
}

/** Dependencies of {@link takeForwardedOrders}. */
export interface OrderTakerDeps {
  readonly orders: ForwardedOrders;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether this daemon leads now. */
  isLeader(): boolean;
  /** The commands of the active configuration. */
  commands(): OperatorCommands;
}

/**
 * Executes the commands that standbys forward, one after another, until the returned function is called, which waits
 * for the last command. After a crash between a command and its reply, the next leader executes the command again. This
 * changes nothing more, except that a pause or hold with a duration ends later.
 */
export function takeForwardedOrders(deps: OrderTakerDeps): () => Promise<void> {
  const stop = new AbortController();
  const running = takeUntilAborted(deps, stop.signal);
  return () => {
    stop.abort();
    return running;
  };
}

async function takeUntilAborted(deps: OrderTakerDeps, signal: AbortSignal): Promise<void> {
  const { orders, clock, log, isLeader } = deps;
  /** Replies that could not be written yet. Their commands are not executed again. */
  const unwritten = new Map<number, CommandReply>();
  let isFailing = false;
  while (!signal.aborted) {
    try {
      for (const order of isLeader() ? await orders.pending() : []) {
        if (signal.aborted || !isLeader()) break;
        const reply = unwritten.get(order.id) ?? (await execute(order, deps));
        unwritten.set(order.id, reply);
        await orders.answer(order.id, reply);
        unwritten.delete(order.id);
      }
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.warn({ err: error }, "forwarded commands not processed; trying again");
      isFailing = true;
    }
    await clock.sleep(TAKE_INTERVAL_MS, signal);
  }
}

async function execute(order: ForwardedOrder, { commands, log }: OrderTakerDeps): Promise<CommandReply> {
  const { command, target, reason, forMs = null, operator } = order;
  const route = operatorCommandTable.find(({ name }) => name === command);
  if (route === undefined)
    return fail({ kind: "conflict", message: `this version does not have the command ${command}` });
  const reply = await route.execute(onBehalfOf(commands(), operator), target, { reason, forMs });
  const fields = { order: command, operator, target };
  if (reply.ok) log.info({ ...fields, reason }, "forwarded command executed");
  else log.warn({ ...fields, refusal: reply.error.message }, "forwarded command rejected");
  return reply;
}
