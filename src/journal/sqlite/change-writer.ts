import type { DatabaseSync } from "node:sqlite";
import type { Decision } from "../../model/remediation/decision.ts";
import type { Action, Episode, NodeHold, TimerRow } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { OperatorCommandRow } from "../../model/remediation/operator-command.ts";
import { assertJournalFact, endOf, numberOfId } from "../row-rules.ts";

/**
 * Creates a function that writes one change in the caller's transaction. It throws SQLite's errors, and errors for
 * invalid changes.
 */
export function createChangeWriter(database: DatabaseSync): (change: JournalChange) => void {
  const rows = createRowWriter(database);
  const deleteTimer = database.prepare("DELETE FROM timers WHERE node = ? AND policy = ?");
  const deleteHold = database.prepare("DELETE FROM holds WHERE node = ? AND policy = ?");
  const putFact = database.prepare("REPLACE INTO facts (key, value) VALUES (?, ?)");
  const deleteFact = database.prepare("DELETE FROM facts WHERE key = ?");
  return (change) => {
    switch (change.kind) {
      case "timer":
        return rows.timer(change.row);
      case "timer_gone":
        return void deleteTimer.run(change.node, change.policy);
      case "episode":
        return rows.episode(change.row);
      case "action":
        return rows.action(change.row);
      case "decision":
        return rows.decision(change.row);
      case "hold":
        return rows.hold(change.row);
      case "hold_gone":
        return void deleteHold.run(change.node, change.policy ?? "");
      case "order":
        return rows.order(change.row);
      case "fact":
        return writeFact(change.key, change.value);
      default:
        throw new Error(`unknown kind of journal change: ${(change satisfies never as JournalChange).kind}`);
    }
  };

  function writeFact(key: string, value: string | null): void {
    assertJournalFact(key);
    if (value === null) deleteFact.run(key);
    else putFact.run(key, value);
  }
}

function createRowWriter(database: DatabaseSync) {
  const putTimer = database.prepare(
    "REPLACE INTO timers (node, policy, state, true_ms, clear_ms, since, node_created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  // REPLACE is not used, because another id with the same number is a bug and must not overwrite its row.
  const putEpisode = database.prepare(
    `INSERT INTO episodes (number, id, policy, node, state, opened_at, closed_at, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET policy = excluded.policy, node = excluded.node, state = excluded.state,
       opened_at = excluded.opened_at, closed_at = excluded.closed_at, body = excluded.body`,
  );
  const putAction = database.prepare(
    `INSERT INTO actions (number, id, episode, policy, node, state, created_at, over_at, body)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET episode = excluded.episode, policy = excluded.policy, node = excluded.node,
       state = excluded.state, created_at = excluded.created_at, over_at = excluded.over_at, body = excluded.body`,
  );
  const addDecision = database.prepare(
    "INSERT INTO decisions (at, policy, node, episode, verdict, body) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const addOperatorCommand = database.prepare("INSERT INTO orders (at, node, body) VALUES (?, ?, ?)");
  const putHold = database.prepare("REPLACE INTO holds (node, policy, ends_at, body) VALUES (?, ?, ?, ?)");
  return {
    timer({ node, policy, state, trueMs, clearMs, since, nodeCreatedAt }: TimerRow): void {
      putTimer.run(node, policy, state, trueMs, clearMs, since, nodeCreatedAt ?? null);
    },
    episode(row: Episode): void {
      const { id, policy, node, state, openedAt, closedAt } = row;
      putEpisode.run(numberOfId(id), id, policy, node, state, openedAt, closedAt, JSON.stringify(row));
    },
    action(row: Action): void {
      const { id, episode, policy, node, state, createdAt } = row;
      putAction.run(numberOfId(id), id, episode, policy, node, state, createdAt, endOf(row), JSON.stringify(row));
    },
    decision(row: Decision): void {
      addDecision.run(row.at, row.policy, row.node, row.episode, row.verdict, JSON.stringify(row));
    },
    order(row: OperatorCommandRow): void {
      addOperatorCommand.run(row.at, row.node, JSON.stringify(row));
    },
    hold(row: NodeHold): void {
      putHold.run(row.node, row.policy ?? "", row.until, JSON.stringify(row));
    },
  };
}
