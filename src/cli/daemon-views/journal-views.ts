import { DAY_MS, type DurationMs } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Location } from "../../model/snapshot.ts";
import type { ActionView, DecisionView, OperatorCommandView } from "../../web/api/row-views.ts";
import { requestText, stateText } from "../output/node-explanation-text.ts";
import { formatTime, nodeLabel } from "../output/text.ts";

/** A row with the name of its node, or null if the node has none, or is not in the fleet. */
export type Named<Row> = Row & { readonly name: string | null };

/** A command that lists rows of the journal, newest first. */
export interface JournalView<Row extends { readonly node: NodeId | null }> {
  /** Name of the route, and what the rows are. */
  readonly route: "decisions" | "actions" | "orders";
  /** The time by which the journal sorts rows, in ISO 8601. */
  sortedBy(row: Row): string;
  /** The time that is shown, in ISO 8601. */
  shownTime(row: Row): string;
  /** How much later than `sortedBy` the shown time of a row may be for `--since` to find it. */
  readonly shownLaterMs: DurationMs;
  /** Where the node was at the time of the row. Absent if rows do not say it; the directory then says where it is. */
  locationOf?(row: Row): Location;
  readonly titles: readonly string[];
  /** Returns the cells of a row, in the order of the titles. */
  cellsOf(row: Named<Row>): readonly string[];
}

/** `decisions`. */
export const DECISIONS: JournalView<DecisionView> = {
  route: "decisions",
  sortedBy: ({ at }) => at,
  shownTime: ({ at }) => at,
  shownLaterMs: 0,
  titles: ["time", "node", "policy", "step", "mode", "verdict", "reasons"],
  cellsOf: ({ at, node, name, policy, step, mode, verdict, blockers }) => [
    formatTime(at),
    nodeLabel(node, name),
    policy,
    String(step + 1),
    mode,
    verdict,
    blockers.map(({ reason }) => reason).join(", "),
  ],
};

/** `actions`. */
export const ACTIONS: JournalView<ActionView> = {
  route: "actions",
  sortedBy: (row) => row.created_at,
  shownTime: (row) => row.sent_at ?? row.created_at,
  // An action is created when it waits for approval. Few wait for longer than this.
  shownLaterMs: DAY_MS,
  locationOf: ({ country, region }) => ({ country, region }),
  titles: ["time", "id", "node", "region", "policy", "step", "action", "state", "detail"],
  cellsOf: (row) => [
    formatTime(row.sent_at ?? row.created_at),
    row.id,
    nodeLabel(row.node, row.name),
    row.region,
    row.policy,
    String(row.step + 1),
    requestText(row),
    stateText(row),
    (row.detail ?? "").replaceAll(row.node, row.name ?? row.node),
  ],
};

/** `orders`. */
export const ORDERS: JournalView<OperatorCommandView> = {
  route: "orders",
  sortedBy: ({ at }) => at,
  shownTime: ({ at }) => at,
  shownLaterMs: 0,
  titles: ["time", "command", "operator", "node", "result"],
  cellsOf: ({ at, order, operator, node, name, detail }) => [
    formatTime(at),
    order,
    operator ?? "-",
    node === null ? "-" : nodeLabel(node, name),
    node === null ? detail : detail.replaceAll(node, name ?? node),
  ],
};
