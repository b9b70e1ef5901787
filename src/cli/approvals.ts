import type { NodeId } from "../model/node.ts";
import type { ActionView } from "../web/api/row-views.ts";
import { type CommandContext, EXIT_OK, type ExitCode, failWith, type OutputOption, PROGRAM, print } from "./context.ts";
import { DaemonClient, type DaemonConnectionOptions } from "./daemon-client.ts";
import type { Named } from "./daemon-views/journal-rows.ts";
import { readDirectory } from "./daemon-views/node-directory.ts";
import { expiryText, fieldLines, requestText } from "./output/node-explanation-text.ts";
import { formatTime, stripControlCharacters } from "./output/text.ts";

interface ApprovalsOptions extends DaemonConnectionOptions, OutputOption {}

/** Maximum number of rows that the daemon returns. */
const APPROVALS_MAX = 1_000;

/** `approvals`: lists the actions that wait for approval, with their evidence. */
export async function runApprovals(options: ApprovalsOptions, context: CommandContext): Promise<ExitCode> {
  const daemon = new DaemonClient(options, context);
  const actions = await daemon.rows<ActionView>(`/api/v1/actions?state=awaiting&limit=${APPROVALS_MAX}`);
  if (!actions.ok) return failWith(context, actions.error);
  // If the names can't be read, ids are shown.
  const directory = actions.value.length === 0 ? null : await readDirectory(daemon);
  const nameOf = (id: NodeId) => (directory?.ok ? (directory.value.get(id)?.name ?? null) : null);
  const waiting = actions.value.map((action) => ({ ...action, name: nameOf(action.node) }));
  print(context, options, waiting, formatApprovals);
  return EXIT_OK;
}

function formatApprovals(waiting: readonly Named<ActionView>[]): string {
  if (waiting.length === 0) return "no actions are waiting for approval\n";
  const blocks = waiting.map((action) =>
    [
      `${action.id}  ${requestText(action)} ${action.name ?? action.node} (${placeText(action)})`,
      `    by ${action.policy}, step ${action.step + 1} of ${action.episode}, waiting since ${formatTime(action.created_at)} ${expiryText(action)}`.trimEnd(),
      `    based on data observed ${formatTime(action.evidence.observed_at)}:`,
      ...fieldLines(action.evidence.fields, action.evidence.observed_at).map((line) => `      ${line}`),
    ]
      .map(stripControlCharacters)
      .join("\n"),
  );
  return `${blocks.join("\n\n")}\n\n${PROGRAM} approve ${waiting[0]!.id}, or reject. An action also expires when its evidence no longer holds.\n`;
}

const placeText = ({ node, name, country, region }: Named<ActionView>): string =>
  [...(name === null ? [] : [node]), country, region].join(", ");
