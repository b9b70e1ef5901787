import { ok } from "../base/result.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type { CommandReply, OperatorCommand, OperatorCommandName } from "../model/remediation/operator-command.ts";
import type { EpochMs } from "../model/time.ts";
import type { RemediationRecords } from "../policy/remediation-records.ts";
import { type PlanDeps, type Planned, planCommand, reject } from "./command-plans.ts";
import { ownershipOf } from "./operator-holds.ts";

/** Dependencies of the operator commands. */
interface OperatorCommandsDeps extends PlanDeps {
  /** Aborted when the controller stops. No command begins then, because the next controller may miss its effect. */
  readonly stopping: AbortSignal;
  /** Called after each command that changed something. */
  onCommand(): void;
}

/**
 * Creates the operator commands. A command that can't be journaled is rejected, because a restart would lose it. A
 * command is planned with the state after all earlier commits, and takes effect once it is journaled.
 */
export const createOperatorCommands = (deps: OperatorCommandsDeps) => ({
  /** Executes a command. If it succeeds, it is journaled with the operator's name. */
  execute: (command: OperatorCommand) => execute(deps, command),
  /**
   * Journals the result of a reload. Without `problems` the new configuration is active. `operator` requested it, and is
   * null if unknown. `origin` is put before the text of the row.
   */
  noteReload(problems: readonly string[], operator: string | null, origin: string): void {
    const rest = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
    const result = problems.length === 0 ? "the new configuration is active" : `rejected: ${problems[0]}${rest}`;
    const row = { at: deps.remediationState.now(), command: "reload", operator, node: null, action: null } as const;
    deps.remediationState.record([{ kind: "command", row: { ...row, detail: `${origin}${result}` } }]);
    countCommand(deps, "reload");
  },
});

/** Operator commands. */
export type OperatorCommands = ReturnType<typeof createOperatorCommands>;

/** Plans a command, journals it and its changes, and applies it. */
async function execute(deps: OperatorCommandsDeps, command: OperatorCommand): Promise<CommandReply> {
  if (deps.stopping.aborted)
    return reject(
      "stopping",
      "the daemon is reloading or stopping, and nothing has changed; try again in a few seconds",
    );
  const { remediationState } = deps;
  const { command: name, operator } = command;
  let planned!: Planned;
  let plannedAt!: EpochMs;
  const changesNow = () => {
    planned = planCommand(deps, command);
    plannedAt = remediationState.now();
    if (!planned.ok || planned.value.changes === null) return null;
    const { changes, reply: detail, node = null, action = null } = planned.value;
    const row = { at: plannedAt, command: name, operator, node, action, detail };
    return [...changes, { kind: "command", row } as const];
  };
  const isDone = await remediationState.commit(changesNow, () => {
    if (!planned.ok) return;
    remediationState.record(overwrittenRows(remediationState.records, planned.value.changes!, plannedAt));
    planned.value.apply?.();
  });
  if (!planned.ok) return planned;
  if (isDone) {
    deps.onCommand();
    countCommand(deps, name);
  }
  if (isDone || planned.value.changes === null) return ok(planned.value.reply);
  const problem = remediationState.journalProblem() ?? "the journal could not be written, but can be now";
  return reject("journal", `${problem}; nothing has changed`);
}

/**
 * Returns the facts, operators' holds, releases and answers of a command planned at `plannedAt` that do not apply because
 * something else was recorded while it was journaled, for example that an earlier pause or hold, or the request for
 * approval, expired. They must be recorded again.
 */
const overwrittenRows = (
  records: RemediationRecords,
  changes: readonly JournalChange[],
  plannedAt: EpochMs,
): readonly JournalChange[] =>
  changes.flatMap((change): JournalChange[] => {
    if (change.kind === "fact") return records.fact(change.key) === change.value ? [] : [change];
    if (change.kind === "action") {
      const known = records.action(change.row.id);
      return known !== change.row && known?.state === "lapsed" ? [change] : [];
    }
    if (change.kind === "hold_gone") {
      const known = records.hold(change.node, change.policy);
      // What others did since then still holds the node.
      return known !== null && known.at <= plannedAt ? [change] : [];
    }
    if (change.kind !== "hold" || change.row.kind !== "held") return [];
    const known = records.hold(change.row.node, null);
    const ownership = ownershipOf(known);
    return known === change.row ? [] : [{ ...change, row: { ...change.row, ...(ownership && { ownership }) } }];
  });

const countCommand = ({ metrics }: OperatorCommandsDeps, command: OperatorCommandName): void =>
  metrics.inc("proxywarden_operator_commands_total", { command, source: "operator" });
