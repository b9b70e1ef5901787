import type { ActionView } from "../web/api/row-views.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode } from "./context.ts";
import { askDaemon, type DaemonOptions, isList, printable, readToken } from "./daemon-api/client.ts";
import { readableTime } from "./arguments/moment.ts";
import { withProgress } from "./output/progress.ts";
import { fieldLines, requestText } from "./output/node-explanation-text.ts";

/** Options of `approvals`. */
export interface ApprovalsOptions extends DaemonOptions {
  readonly output: "text" | "json";
}

/** As many as the daemon gives at once. */
const APPROVALS_MAX = 1_000;

/** `approvals`: the actions that wait for a person, and what each was decided on. */
export async function approvals(options: ApprovalsOptions, context: CommandContext): Promise<ExitCode> {
  const { env, out, err } = context;
  // It needs no token; one that is given, as to the orders, is sent along.
  const token = readToken(options, env);
  const path = `/api/v1/actions?state=awaiting&limit=${APPROVALS_MAX}`;
  const answer = token.ok
    ? await withProgress(
        `waiting for ${options.url}`,
        askDaemon(options, env, { method: "GET", path, token: token.value }, isList<ActionView>),
        context,
      )
    : token;
  if (!answer.ok) {
    err.write(`proxywarden: ${answer.error}\n`);
    return EXIT_BAD;
  }
  const waiting = answer.value.data;
  out.write(options.output === "json" ? `${JSON.stringify(waiting, null, 2)}\n` : approvalsText(waiting));
  return EXIT_FINE;
}

function approvalsText(waiting: readonly ActionView[]): string {
  if (waiting.length === 0) return "no actions are waiting for approval\n";
  const blocks = waiting.map((action) =>
    [
      `${action.id}  ${requestText(action)} ${action.node} (${action.country}, ${action.region})`,
      `    by ${action.policy}, step ${action.step + 1} of ${action.episode}, waiting since ${readableTime(action.created_at)}`,
      `    based on data observed ${readableTime(action.evidence.observed_at)}:`,
      ...fieldLines(action.evidence.fields).map((line) => `      ${line}`),
    ]
      .map(printable)
      .join("\n"),
  );
  return `${blocks.join("\n\n")}\n\nproxywarden approve ${waiting[0]!.id}, or reject. An action expires when its evidence no longer holds.\n`;
}
