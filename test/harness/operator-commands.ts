import type { DurationMs } from "../../src/base/duration.ts";
import type { OperatorCommand } from "../../src/model/remediation/operator-command.ts";
import type { OperatorCommands } from "../../src/remediation/operator-command-execution.ts";

/** The commands of an operator, by name. */
export type CommandsByName = ReturnType<typeof commandsOf>;

/** Returns the commands of an operator as methods. `operator` null: no operators are configured. */
export function commandsOf(commands: Pick<OperatorCommands, "execute">, operator: string | null = null) {
  const give = (command: OperatorCommand["command"], target = "", reason = "", forMs: DurationMs | null = null) =>
    commands.execute({ command, target, reason, forMs, operator });
  return {
    pause: (reason: string, forMs?: DurationMs) => give("pause", "", reason, forMs),
    resume: () => give("resume"),
    approve: (action: string) => give("approve", action),
    reject: (action: string, reason: string) => give("reject", action, reason),
    hold: (node: string, reason: string, forMs?: DurationMs) => give("hold", node, reason, forMs),
    release: (node: string) => give("release", node),
    resetBreaker: () => give("reset-breaker"),
    acceptInventory: () => give("accept-inventory"),
  };
}
