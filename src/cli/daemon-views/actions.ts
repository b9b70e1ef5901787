import type { ActionView } from "../../web/api/row-views.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { createPaint, type Paint } from "../output/color.ts";
import { requestText, stateText } from "../output/node-explanation-text.ts";
import { formatTable, formatTime } from "../output/text.ts";
import { showView } from "./daemon-view.ts";
import { type JournalRowOptions, type Named, rowReader } from "./journal-rows.ts";
import { nodeLabel } from "./node-directory.ts";

/** `actions`: lists the latest actions, newest first. */
export function runActions(options: JournalRowOptions, context: CommandContext): Promise<ExitCode> {
  const read = rowReader<ActionView>({ route: "actions", timeOf: (row) => row.created_at }, options, context);
  const paint = createPaint(context.out, context.env);
  return showView({ read, format: (rows) => formatActions(rows, paint) }, options, context);
}

const TITLES = ["time", "id", "node", "region", "policy", "step", "action", "state", "detail"];

function formatActions(rows: readonly Named<ActionView>[], paint: Paint): string {
  if (rows.length === 0) return "no actions\n";
  const cells = rows.map((row) => [
    formatTime(row.sent_at ?? row.created_at),
    row.id,
    nodeLabel(row.node, row.name),
    row.region,
    row.policy,
    String(row.step + 1),
    requestText(row),
    stateText(row),
    row.detail ?? "",
  ]);
  return formatTable(TITLES, cells, paint);
}
