import { type DurationMs, formatDuration } from "../base/duration.ts";
import type { OperatorCommandRoute } from "../web/api/operator-command-routes.ts";
import { type CommandContext, CommandFailure, EXIT_USAGE, type OutputOption, print } from "./context.ts";
import { DaemonClient, type DaemonConnectionOptions, readToken, TOKEN_VARIABLE } from "./daemon-client.ts";
import { resolveNode } from "./daemon-views/node-lookup.ts";
import { stripControlCharacters } from "./output/text.ts";

/** Options of an operator command. */
export interface OperatorCommandOptions extends DaemonConnectionOptions, OutputOption {
  readonly reason?: string;
  readonly for?: DurationMs;
}

/**
 * Sends an operator command to the running daemon. `subject` is the node (id or name) or action that it is about;
 * absent for other commands.
 */
export async function sendOperatorCommand(
  route: OperatorCommandRoute,
  subject: string | undefined,
  options: OperatorCommandOptions,
  context: CommandContext,
): Promise<void> {
  if (subject?.trim() === "")
    throw new CommandFailure(
      `${route.name} needs the id${route.about === "node" ? " or name" : ""} of the ${route.about}, but the given one is empty`,
      EXIT_USAGE,
    );
  if (readToken(options, context.env) === null) {
    const problem = `${route.name} needs an operator token: pass its file as --token-file, or set ${TOKEN_VARIABLE}`;
    throw new CommandFailure(problem, EXIT_USAGE);
  }
  const daemon = new DaemonClient(options, context);
  const id = route.about === "node" ? await resolveNode(subject ?? "", daemon) : (subject ?? "");
  const path = route.path.replace(":id", encodeURIComponent(id));
  const body = {
    ...(options.reason === undefined ? {} : { reason: options.reason }),
    ...(options.for === undefined ? {} : { for: formatDuration(options.for) }),
  };
  const { message } = await daemon.post<{ readonly message: string }>(path, { message: "string" }, body);
  print(context, options, { message }, () => `${stripControlCharacters(message)}\n`);
}
