import type { ActionView } from "../web/api/row-views.ts";
import { type CommandContext, EXIT_OK, type ExitCode, failWith, type OutputOption, print } from "./context.ts";
import { type DaemonConnectionOptions, isRowList, readToken, requestDaemon } from "./daemon-api/client.ts";
import { fieldLines, requestText } from "./output/node-explanation-text.ts";
import { formatTime, stripControlCharacters } from "./output/text.ts";

/** Options of `approvals`. */
interface ApprovalsOptions extends DaemonConnectionOptions, OutputOption {}

/** The most rows the daemon returns. */
const APPROVALS_MAX = 1_000;

/** `approvals`: lists the actions that wait for approval, with their evidence. */
export async function runApprovals(options: ApprovalsOptions, context: CommandContext): Promise<ExitCode> {
  // The route needs no token, but the web configuration may require a login.
  const token = readToken(options, context.env);
  if (!token.ok) return failWith(context, token.error);
  const path = `/api/v1/actions?state=awaiting&limit=${APPROVALS_MAX}`;
  const request = { method: "GET", path, token: token.value } as const;
  const response = await requestDaemon(options, request, isRowList<ActionView>, context);
  if (!response.ok) return failWith(context, response.error);
  print(context, options, response.value.data, formatApprovals);
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
