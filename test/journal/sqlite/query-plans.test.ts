import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createJournal } from "../../../src/journal/sqlite/journal.ts";
import { migrate } from "../../../src/journal/sqlite/migrations.ts";
import type { Journal } from "../../../src/model/remediation/journal.ts";

describe("every statement of the journal", () => {
  /** A database that takes down what is prepared on it. */
  function recording(database: DatabaseSync): { database: DatabaseSync; statements: string[] } {
    const statements: string[] = [];
    const prepare = (sql: string) => {
      statements.push(sql);
      return database.prepare(sql);
    };
    const recorder = { prepare, exec: (sql: string) => database.exec(sql), isTransaction: false };
    return { database: recorder as unknown as DatabaseSync, statements };
  }

  async function askEverything(journal: Journal): Promise<void> {
    await journal.load(0);
    for (const asked of [{}, { until: 1 }, { policy: "p" }, { policy: "p", until: 1 }]) {
      for (const query of [asked, { ...asked, node: "n" }]) {
        for (const rows of [journal.decisions, journal.actions, journal.episodes]) await rows({ ...query, limit: 1 });
      }
    }
  }

  test("uses an index, and sorts nothing", async () => {
    const database = new DatabaseSync(":memory:");
    migrate(database);
    const { database: recorder, statements } = recording(database);
    await askEverything(createJournal(recorder));
    const slow = statements.flatMap((sql) =>
      database
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => String(detail))
        .filter((step) => /^SCAN (?!CONSTANT)|TEMP B-TREE/.test(step))
        .map((step) => `${step}: ${sql.replaceAll(/\s+/g, " ")}`.slice(0, 76)),
    );
    expect(statements.length).toBeGreaterThan(30);
    // A policy may have as many rows as there are, a node has few.
    const ofNode = statements.filter((sql) => /^SELECT body .*node = .*policy \|\| '' = /.test(sql));
    const plans = ofNode.map((sql) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).get()?.detail);
    expect(plans).toHaveLength(6);
    for (const plan of plans) expect(plan).toContain("_by_node");
    expect(slow).toEqual(
      [
        // What is loaded whole is read whole.
        `SCAN main.timers: SELECT policy, node, state, true_ms AS "trueMs", clear_ms AS "c`,
        "SCAN main.holds: SELECT body FROM main.holds",
        "SCAN main.facts: SELECT key, value FROM main.facts",
        // The newest of all are at the end of an index.
        "SCAN main.decisions USING INDEX decisions_by_time: SELECT body FROM main.decisions",
        "SCAN main.actions USING INDEX actions_by_time: SELECT body FROM main.actions",
        "SCAN main.episodes USING INDEX episodes_by_time: SELECT body FROM main.episodes",
      ].map((line) => line.slice(0, 76)),
    );
  });
});
