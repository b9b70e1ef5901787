import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SessionTable } from "../../../src/inventory/sessions/session-table.ts";

describe("the session table", () => {
  test("behaves like a Map while it grows, shrinks and loses rows", () => {
    const steps = fc.array(fc.record({ ids: fc.array(fc.nat(3_000)), keepOver: fc.nat(100) }), { maxLength: 12 });
    fc.assert(
      fc.property(steps, (rounds) => {
        const table = new SessionTable();
        const plain = new Map<number, number>();
        rounds.forEach(({ ids, keepOver }, round) => {
          for (const id of ids) {
            const row = table.row(`sess_${id}`);
            expect(table.isNew).toBe(!plain.has(id));
            if (plain.has(id)) expect(table.columns.sent[row]).toBe(plain.get(id));
            table.columns.sent[row] = id + round;
            plain.set(id, id + round);
          }
          Array.from(table.sweep((row) => table.columns.sent[row]! % 101 < keepOver));
          for (const [id, sent] of plain) if (sent % 101 < keepOver) plain.delete(id);
          expect(table.size).toBe(plain.size);
          for (const [id, sent] of plain) expect(table.columns.sent[table.row(`sess_${id}`)]).toBe(sent);
        });
      }),
      { numRuns: 60 },
    );
  });

  test("stores a million sessions in at most 150 bytes each", () => {
    const before = process.memoryUsage().arrayBuffers;
    const table = new SessionTable();
    for (let id = 0; id < 1_000_000; id++) table.row(`sess_${id}`);
    expect(table.size).toBe(1_000_000);
    expect((process.memoryUsage().arrayBuffers - before) / 1_000_000).toBeLessThanOrEqual(150);
  });
});
