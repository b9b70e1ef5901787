import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { thresholdsOf } from "../../../src/policy/cel/thresholds.ts";
import { mustCompile } from "../../../src/policy/policy.ts";

/** `disk>0.95`: trouble is above. */
const thresholdTexts = (text: string) =>
  thresholdsOf(mustCompile(text)).map(
    ({ usage, value, side }) =>
      `${usage.replace("Usage", "")}${side === "above" ? ">" : "<"}${Number(value.toFixed(6))}`,
  );

describe("the usage thresholds of a condition", () => {
  test.each<[text: string, lines: readonly string[]]>([
    ["node.disk_usage > 0.95", ["disk>0.95"]],
    ["0.95 <= node.disk_usage", ["disk>0.95"]],
    ["node.cpu_usage < 0.05", ["cpu<0.05"]],
    ['node.status == "online" && (node.memory_usage > 0.95 || node.disk_usage >= 0.97)', ["memory>0.95", "disk>0.97"]],
    ["node.cpu_usage > 0.9 && node.cpu_usage > fleet.median.cpu_usage + 0.3", ["cpu>0.9"]],
    ["!(node.disk_usage < 0.8)", ["disk>0.8"]],
    ["!!(node.disk_usage < 0.8)", ["disk<0.8"]],
    ["node.disk_usage > 0.95 || node.disk_usage > 0.95", ["disk>0.95"]],
    ["node.disk_usage + 0.1 > 0.95", ["disk>0.85"]],
    ["1.0 - node.disk_usage < 0.1", ["disk>0.9"]],
    ["-node.disk_usage < -0.75", ["disk>0.75"]],
    ["node.disk_usage * 100 > 90", ["disk>0.9"]],
    ["2 * node.disk_usage > node.disk_usage + 0.5", ["disk>0.5"]],
    ["ratio(node.disk_usage, 2) >= 0.45", ["disk>0.9"]],
    ["node.active_sessions > 10 ? node.cpu_usage > 0.9 : node.cpu_usage > 0.5", ["cpu>0.9", "cpu>0.5"]],
    ["node.cpu_usage > 0.5 ? node.active_sessions > 10 : node.uptime_hours < 1", ["cpu>0.5", "cpu<0.5"]],
    ["node.memory_usage > 0.0", ["memory>0"]],
  ])("%s: %j", (text, lines) => {
    expect(thresholdTexts(text)).toEqual(lines);
  });

  test.each([
    'node.status == "offline"',
    "node.disk_usage == 0.5",
    "node.cpu_usage > node.memory_usage",
    "node.cpu_usage + node.memory_usage > 1.5",
    "node.cpu_usage - node.cpu_usage < 0.5",
    "fleet.median.disk_usage > 0.9",
    "node.disk_usage * 2 > 2.5",
    "node.disk_usage + 1 > 0.5",
    "node.cpu_usage * node.cpu_usage > 0.5",
    "ratio(0.5, node.cpu_usage) > 1.0",
    "ratio(node.cpu_usage, 0) > 1.0",
    "now - node.created_at > duration('24h')",
  ])("%s has none", (text) => {
    expect(thresholdTexts(text)).toEqual([]);
  });

  test("a comparison changes its result exactly at its threshold, and is true only on its side", () => {
    const twentieths = (min: number, max: number) => fc.integer({ min, max }).map((count) => count / 20);
    const comparison = fc.record({
      factor: twentieths(-40, 40).filter((factor) => factor !== 0),
      constant: twentieths(-30, 30),
      operator: fc.constantFrom("<", "<=", ">", ">="),
      bound: twentieths(-30, 30),
      isNegated: fc.boolean(),
    });
    let lines = 0;
    fc.assert(
      fc.property(comparison, fc.double({ min: 0.001, max: 0.999, noNaN: true }), (parts, usage) => {
        const { factor, constant, operator, bound, isNegated } = parts;
        const plain = `${factor.toFixed(2)} * node.disk_usage + ${constant.toFixed(2)} ${operator} ${bound.toFixed(2)}`;
        const expression = mustCompile(isNegated ? `!(${plain})` : plain);
        const [line] = thresholdsOf(expression);
        const at = (disk: number) => expression.evaluate([disk]);
        if (line === undefined) {
          expect(at(usage)).toBe(at(1 - usage));
          return;
        }
        lines++;
        if (Math.abs(usage - line.value) > 1e-9) expect(at(usage)).toBe(usage > line.value === (line.side === "above"));
      }),
      { numRuns: 2_000 },
    );
    expect(lines).toBeGreaterThan(400);
  });
});
