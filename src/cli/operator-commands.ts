import {
  type OperatorCommandRoute,
  type OperatorCommandRouteName,
  operatorCommandTable,
} from "../web/api/operator-commands.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, EXIT_USAGE, type ExitCode } from "./context.ts";
import {
  type DaemonConnectionOptions,
  type DaemonRequest,
  type JsonObject,
  readToken,
  requestDaemon,
  stripControlCharacters,
  TOKEN_VARIABLE,
} from "./daemon-api/client.ts";
import { withProgress } from "./output/progress.ts";

/** Options of a command that gives an order. */
export interface OperatorCommandOptions extends DaemonConnectionOptions {
  readonly reason?: string;
  readonly output: "text" | "json";
}

/** A command that gives an order: the order, and what its help says. */
export interface OperatorCliCommand {
  readonly route: OperatorCommandRoute;
  readonly description: string;
  /** Arguments of an example. */
  readonly example: string;
}

const COMMAND_HELP: Readonly<Record<OperatorCommandRouteName, Omit<OperatorCliCommand, "route">>> = {
  pause: { description: "pause all actions until resume; polling continues", example: '--reason "deploy until 14:00"' },
  resume: { description: "end a pause", example: "" },
  approve: { description: "approve a waiting action; see approvals", example: "act-12" },
  reject: {
    description: "reject a waiting action; see approvals",
    example: 'act-12 --reason "the carrier is on it"',
  },
  hold: {
    description: "prevent all policies from acting on a node until release",
    example: 'node_42 --reason "disk is being swapped"',
  },
  release: {
    description:
      "release a node that an operator holds, whose quarantine was lifted by hand, or that a policy has given up",
    example: "node_42",
  },
  "reset-breaker": {
    description: "close the circuit breaker, and restore the mode of policies that fell back to dry_run",
    example: "",
  },
  "accept-inventory": {
    description: "accept the current inventory as the new baseline, after nodes were removed on purpose",
    example: "",
  },
};

/** Every command that gives an order, a row each. */
export const operatorCliCommands: readonly OperatorCliCommand[] = operatorCommandTable.map((row) => ({
  route: row,
  ...COMMAND_HELP[row.name],
}));

/** Gives an order to the running daemon. `id`: what it is about; absent where it is about the daemon as a whole. */
export async function sendOperatorCommand(
  route: OperatorCommandRoute,
  id: string | undefined,
  options: OperatorCommandOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { env, out, err } = context;
  const token = readToken(options, env);
  if (!token.ok) {
    err.write(`proxywarden: ${token.error}\n`);
    return EXIT_FAILURE;
  }
  if (token.value === null) {
    err.write(
      `proxywarden: ${route.name} needs the token of an operator: name its file by --token-file, or set ${TOKEN_VARIABLE}\n`,
    );
    return EXIT_USAGE;
  }
  const request: DaemonRequest = {
    method: "POST",
    path: route.path.replace(":id", encodeURIComponent(id ?? "")),
    token: token.value,
    ...(options.reason === undefined ? {} : { body: { reason: options.reason } }),
  };
  const answer = await withProgress(
    `waiting for ${options.url}`,
    requestDaemon(options, env, request, isMessage),
    context,
  );
  if (!answer.ok) {
    err.write(`proxywarden: ${answer.error}\n`);
    return EXIT_FAILURE;
  }
  const { message } = answer.value;
  out.write(
    options.output === "json" ? `${JSON.stringify({ message }, null, 2)}\n` : `${stripControlCharacters(message)}\n`,
  );
  return EXIT_OK;
}

const isMessage = (answer: JsonObject): answer is JsonObject & { readonly message: string } =>
  typeof answer.message === "string";
