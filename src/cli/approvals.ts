import type { ActionView } from "../web/api/row-views.ts";
import { formatTime } from "./arguments/moment.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, type ExitCode } from "./context.ts";
import {
  type DaemonConnectionOptions,
  isRowList,
  readToken,
  requestDaemon,
  stripControlCharacters,
} from "./daemon-api/client.ts";
import { fieldLines, requestText } from "./output/node-explanation-text.ts";
import { withProgress } from "./output/progress.ts";

/** Options of `approvals`. */
export interface ApprovalsOptions extends DaemonConnectionOptions {
  readonly output: "text" | "json";
}

/** As many as the daemon gives at once. */
const APPROVALS_MAX = 1_000;

/** `approvals`: the actions that wait for a person, and what each was decided on. */
export async function runApprovals(options: ApprovalsOptions, context: CommandContext): Promise<ExitCode> {
  const { env, out, err } = context;
  // It needs no token; one that is given, as to the orders, is sent along.
  const token = readToken(options, env);
  const path = `/api/v1/actions?state=awaiting&limit=${APPROVALS_MAX}`;
  const answer = token.ok
    ? await withProgress(
        `waiting for ${options.url}`,
        requestDaemon(options, env, { method: "GET", path, token: token.value }, isRowList<ActionView>),
        context,
      )
    : token;
  if (!answer.ok) {
    err.write(`proxywarden: ${answer.error}\n`);
    return EXIT_FAILURE;
  }
  const waiting = answer.value.data;
  out.write(options.output === "json" ? `${JSON.stringify(waiting, null, 2)}\n` : formatApprovals(waiting));
  return EXIT_OK;
}

function formatApprovals(waiting: readonly ActionView[]): string {
  if (waiting.length === 0) return "no actions are waiting for approval\n";
  const blocks = waiting.map((action) =>
    [
      `${action.id}  ${requestText(action)} ${action.node} (${action.country}, ${action.region})`,
      `    by ${action.policy}, step ${action.step + 1} of ${action.episode}, waiting since ${formatTime(action.created_at)}`,
      `    based on data observed ${formatTime(action.evidence.observed_at)}:`,
      ...fieldLines(action.evidence.fields).map((line) => `      ${line}`),
    ]
      .map(stripControlCharacters)
      .join("\n"),
  );
  return `${blocks.join("\n\n")}\n\nproxywarden approve ${waiting[0]!.id}, or reject. An action expires when its evidence no longer holds.\n`;
}
