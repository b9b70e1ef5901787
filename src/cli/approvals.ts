import type { ActionView, WithNode } from "../web/api/row-views.ts";
import { requestLabel } from "../web/ui/page/activity/activity-lines.ts";
import { type CommandContext, type ExitCode, failWith, type OutputOption, PROGRAM, print } from "./context.ts";
import { DaemonClient, type DaemonConnectionOptions } from "./daemon-client.ts";
import { expiryText, fieldLines } from "./output/node-explanation-text.ts";
import { formatTime, stripControlCharacters } from "./output/text.ts";

interface ApprovalsOptions extends DaemonConnectionOptions, OutputOption {}

/** Maximum number of rows that the daemon returns. */
const APPROVALS_MAX = 1_000;

/** `approvals`: lists the actions that wait for approval, with their evidence. */
export async function runApprovals(options: ApprovalsOptions, context: CommandContext): Promise<ExitCode> {
  const daemon = new DaemonClient(options, context);
  const actions = await daemon.rows<WithNode<ActionView>>(`/api/v1/actions?state=awaiting&limit=${APPROVALS_MAX}`);
  if (!actions.ok) return failWith(context, actions.error);
  return print(context, options, actions.value, formatApprovals);
}

function formatApprovals(waiting: readonly WithNode<ActionView>[]): string {
  if (waiting.length === 0) return "no actions are waiting for approval\n";
  const blocks = waiting.map((action) =>
    [
      `${action.id}  ${requestLabel(action.request)} ${action.name ?? action.node} (${locationText(action)})`,
      `    by ${action.policy}, step ${action.step + 1} of ${action.episode}, waiting since ${formatTime(action.created_at)} ${expiryText(action)}`.trimEnd(),
      `    based on data observed ${formatTime(action.evidence.observed_at)}:`,
      ...fieldLines(action.evidence.fields, action.evidence.observed_at).map((line) => `      ${line}`),
    ]
      .map(stripControlCharacters)
      .join("\n"),
  );
  return `${blocks.join("\n\n")}\n\n${PROGRAM} approve ${waiting[0]!.id}, or reject. An action also expires when its evidence no longer holds.\n`;
}

const locationText = ({ node, name, country, region }: WithNode<ActionView>): string =>
  [...(name === null ? [] : [node]), country, region].join(", ");
