import {
  type OperatorCommandRoute,
  type OperatorCommandRouteName,
  operatorCommandTable,
} from "../web/api/operator-commands.ts";
import { type CommandContext, EXIT_OK, EXIT_USAGE, type ExitCode, failWith, printJson } from "./context.ts";
import {
  type DaemonConnectionOptions,
  type DaemonRequest,
  type JsonObject,
  readToken,
  requestDaemon,
  stripControlCharacters,
  TOKEN_VARIABLE,
} from "./daemon-api/client.ts";

/** Options of an operator command. */
export interface OperatorCommandOptions extends DaemonConnectionOptions {
  readonly reason?: string;
  readonly output: "text" | "json";
}

/** An operator command: its route and its help. */
interface OperatorCliCommand {
  readonly route: OperatorCommandRoute;
  readonly description: string;
  /** Arguments of the example in the help. */
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

/** All operator commands. */
export const operatorCliCommands: readonly OperatorCliCommand[] = operatorCommandTable.map((row) => ({
  route: row,
  ...COMMAND_HELP[row.name],
}));

/** Sends an operator command to the running daemon. `id`: the node or action it is about; absent for the others. */
export async function sendOperatorCommand(
  route: OperatorCommandRoute,
  id: string | undefined,
  options: OperatorCommandOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const token = readToken(options, context.env);
  if (!token.ok) return failWith(context, token.error);
  if (token.value === null) {
    failWith(context, `${route.name} needs an operator token: pass its file as --token-file, or set ${TOKEN_VARIABLE}`);
    return EXIT_USAGE;
  }
  const request: DaemonRequest = {
    method: "POST",
    path: route.path.replace(":id", encodeURIComponent(id ?? "")),
    token: token.value,
    ...(options.reason === undefined ? {} : { body: { reason: options.reason } }),
  };
  const response = await requestDaemon(options, request, isMessage, context);
  if (!response.ok) return failWith(context, response.error);
  const { message } = response.value;
  if (options.output === "json") printJson(context, { message });
  else context.out.write(`${stripControlCharacters(message)}\n`);
  return EXIT_OK;
}

const isMessage = (response: JsonObject): response is JsonObject & { readonly message: string } =>
  typeof response.message === "string";
