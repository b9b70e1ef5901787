import type { DecisionView } from "../../web/api/row-views.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { createPaint, type Paint } from "../output/color.ts";
import { formatTable, formatTime } from "../output/text.ts";
import { showView } from "./daemon-view.ts";
import { type JournalRowOptions, type Named, rowReader } from "./journal-rows.ts";
import { nodeLabel } from "./node-directory.ts";

/** `decisions`: lists the latest decisions, newest first. */
export function runDecisions(options: JournalRowOptions, context: CommandContext): Promise<ExitCode> {
  const read = rowReader<DecisionView>({ route: "decisions", timeOf: ({ at }) => at }, options, context);
  const paint = createPaint(context.out, context.env);
  return showView({ read, format: (rows) => formatDecisions(rows, paint) }, options, context);
}

const TITLES = ["time", "node", "policy", "step", "mode", "verdict", "reasons"];

function formatDecisions(rows: readonly Named<DecisionView>[], paint: Paint): string {
  if (rows.length === 0) return "no decisions\n";
  const cells = rows.map(({ at, node, name, policy, step, mode, verdict, blockers }) => [
    formatTime(at),
    nodeLabel(node, name),
    policy,
    String(step + 1),
    mode,
    verdict,
    blockers.map(({ reason }) => reason).join(", "),
  ]);
  return formatTable(TITLES, cells, paint);
}
