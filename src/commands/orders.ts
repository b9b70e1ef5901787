import { type OrderName, type OrderRow, orderRows } from "../web/orders.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, EXIT_USAGE, type ExitCode } from "./context.ts";
import {
  askDaemon,
  type DaemonOptions,
  type DaemonRequest,
  type JsonObject,
  printable,
  readToken,
  TOKEN_VARIABLE,
} from "./daemon.ts";
import { withProgress } from "./progress.ts";

/** Options of a command that gives an order. */
export interface OrderOptions extends DaemonOptions {
  readonly reason?: string;
  readonly output: "text" | "json";
}

/** A command that gives an order: the order, and what its help says. */
export interface OrderCommand {
  readonly row: OrderRow;
  readonly description: string;
  /** Arguments of an example. */
  readonly example: string;
}

const helps: Readonly<Record<OrderName, Omit<OrderCommand, "row">>> = {
  pause: { description: "touch nobody until resume; watching goes on", example: '--reason "deploy until 14:00"' },
  resume: { description: "end a pause", example: "" },
  approve: { description: "let an action that waits be carried out; approvals lists them", example: "act-12" },
  reject: {
    description: "refuse an action that waits; approvals lists them",
    example: 'act-12 --reason "the carrier is on it"',
  },
  hold: {
    description: "let no policy touch a node until release",
    example: 'node_42 --reason "disk is being swapped"',
  },
  release: {
    description: "end a hold, a veto after a quarantine that was lifted by hand, or the giving up of a node",
    example: "node_42",
  },
  "reset-breaker": {
    description: "close the breaker, and let policies that fell back to dry_run act again",
    example: "",
  },
  "accept-inventory": {
    description: "measure the inventory by today's from now on, after nodes were taken away for good",
    example: "",
  },
};

/** Every command that gives an order, a row each. */
export const orderCommands: readonly OrderCommand[] = orderRows.map((row) => ({ row, ...helps[row.name] }));

/** Gives an order to the running daemon. `id`: what it is about; absent where it is about the daemon as a whole. */
export async function giveOrder(
  row: OrderRow,
  id: string | undefined,
  options: OrderOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { env, out, err } = context;
  const token = readToken(options, env);
  if (!token.ok) {
    err.write(`proxywarden: ${token.error}\n`);
    return EXIT_BAD;
  }
  if (token.value === null) {
    err.write(
      `proxywarden: ${row.name} needs the token of an operator: name its file by --token-file, or set ${TOKEN_VARIABLE}\n`,
    );
    return EXIT_USAGE;
  }
  const request: DaemonRequest = {
    method: "POST",
    path: row.path.replace(":id", encodeURIComponent(id ?? "")),
    token: token.value,
    ...(options.reason === undefined ? {} : { body: { reason: options.reason } }),
  };
  const answer = await withProgress(`waiting for ${options.url}`, askDaemon(options, env, request, isMessage), context);
  if (!answer.ok) {
    err.write(`proxywarden: ${answer.error}\n`);
    return EXIT_BAD;
  }
  const { message } = answer.value;
  out.write(options.output === "json" ? `${JSON.stringify({ message }, null, 2)}\n` : `${printable(message)}\n`);
  return EXIT_FINE;
}

const isMessage = (answer: JsonObject): answer is JsonObject & { readonly message: string } =>
  typeof answer.message === "string";
