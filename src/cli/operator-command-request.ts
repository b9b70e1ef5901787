import { type DurationMs, formatDuration } from "../base/duration.ts";
import { ok } from "../base/result.ts";
import type { OperatorCommandRoute } from "../web/api/operator-command-routes.ts";
import { type CommandContext, type ExitCode, failUsage, failWith, type OutputOption, print } from "./context.ts";
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
): Promise<ExitCode> {
  if (subject?.trim() === "")
    return failUsage(context, `${route.name} needs the id of the ${route.about}, which is empty here`);
  const token = readToken(options, context.env);
  if (!token.ok) return failWith(context, token.error);
  if (token.value === null) {
    const problem = `${route.name} needs an operator token: pass its file as --token-file, or set ${TOKEN_VARIABLE}`;
    return failUsage(context, problem);
  }
  const daemon = new DaemonClient(options, context);
  const id = route.about === "node" ? await resolveNode(subject ?? "", daemon) : ok(subject ?? "");
  if (!id.ok) return failWith(context, id.error);
  const path = route.path.replace(":id", encodeURIComponent(id.value));
  const body = {
    ...(options.reason === undefined ? {} : { reason: options.reason }),
    ...(options.for === undefined ? {} : { for: formatDuration(options.for) }),
  };
  const response = await daemon.post<{ readonly message: string }>(path, { message: "string" }, body);
  if (!response.ok) return failWith(context, response.error);
  const { message } = response.value;
  return print(context, options, { message }, () => `${stripControlCharacters(message)}\n`);
}
