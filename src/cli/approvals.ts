import { ROWS_MAX } from "../web/api/query.ts";
import type { ActionView, WithNode } from "../web/api/row-views.ts";
import { requestLabel } from "../web/ui/page/activity/activity-lines.ts";
import { PROGRAM } from "./context.ts";
import { viewCommand } from "./daemon-views/daemon-view.ts";
import { expiryText, fieldLines } from "./output/node-explanation-text.ts";
import { formatTime, stripControlCharacters } from "./output/text.ts";

type UnsentAction = WithNode<ActionView>;

/**
 * `approvals`: lists the actions that wait for approval, and then the approved ones that are not sent yet, with their
 * evidence.
 */
export const runApprovals = viewCommand(async (_, daemon) => {
  const read = (state: string) => daemon.rows<UnsentAction>(`/api/v1/actions?state=${state}&limit=${ROWS_MAX}`);
  const [awaiting, approved] = [await read("awaiting"), await read("approved")];
  // An action may be approved between the two requests.
  const actions = [...new Map([...awaiting, ...approved].map((action) => [action.id, action])).values()];
  const notes = Object.entries({ "wait for approval": awaiting, "are approved": approved }).flatMap(
    ([what, { length }]) => (length < ROWS_MAX ? [] : [`only the first ${ROWS_MAX} actions that ${what} were read`]),
  );
  return { value: actions, format: () => formatApprovals(actions), notes };
});

function formatApprovals(actions: readonly UnsentAction[]): string {
  if (actions.length === 0) return "no actions are waiting to be approved or sent\n";
  const blocks = actions.map((action) =>
    [
      `${action.id}  ${requestLabel(action.request)} ${action.name ?? action.node} (${locationText(action)})`,
      `    by ${action.policy}, step ${action.step + 1} of ${action.episode}, ${stateText(action)}${expiryText(action)}`,
      `    based on data observed ${formatTime(action.evidence.observed_at)}:`,
      ...fieldLines(action.evidence.fields, action.evidence.observed_at).map((line) => `      ${line}`),
    ]
      .map(stripControlCharacters)
      .join("\n"),
  );
  return `${blocks.join("\n\n")}\n\n${stripControlCharacters(nextCommand(actions[0]!))}. An action also expires when its evidence no longer holds.\n`;
}

const stateText = ({ state, created_at, answered_at, operator }: UnsentAction): string =>
  state === "approved"
    ? `approved ${operator === null ? "" : `by ${operator} `}${formatTime(answered_at ?? created_at)}, valid`
    : `waiting since ${formatTime(created_at)}`;

/** Returns the command to run next, for the first action of the list. */
const nextCommand = ({ id, node, state }: UnsentAction): string =>
  state === "approved"
    ? `${PROGRAM} reject ${id} withdraws the approval; ${PROGRAM} explain ${node} shows what holds it`
    : `${PROGRAM} approve ${id}, or reject`;

const locationText = ({ node, name, country, region }: UnsentAction): string =>
  [...(name === null ? [] : [node]), country, region].join(", ");
