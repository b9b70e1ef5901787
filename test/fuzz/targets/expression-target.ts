import { compileExpression } from "../../../src/policy/cel/expression.ts";
import { FIELDS } from "../../../src/policy/cel/fields.ts";
import type { Value } from "../../../src/policy/cel/term.ts";
import { mutatedText, pick, randomBytes } from "../mutation.ts";
import { assert, type FuzzTarget } from "../target.ts";

interface Input {
  readonly text: string;
  /** Values of the fields, used in turn. */
  readonly values: readonly (Value | null)[];
}

const seeds = [
  'node.status == "offline" && now - node.last_seen > duration("10m")',
  'node.country in ["DE", "FR"] || node.region.startsWith("eu-")',
  "sessions.failed_ratio > 0.5 && sessions.total >= 10 && region.online_ratio > 0.5",
  "ratio(node.active_sessions, sessions.total) < 0.2 ? node.cpu_usage > 0.9 : node.memory_usage > 0.9",
  "!(node.disk_usage > fleet.median.disk_usage + 0.3) && has(node.created_at)",
  'node.name.matches("^vip-[0-9]+$") && node.uptime_hours < 1 && node.version != "2.4.1"',
  'node.last_seen < timestamp("2026-03-01T00:00:00Z") && node.bandwidth_gb * 2.0 - 1.0 >= 3.5',
];

const words = [
  ...["&&", "||", "!", "==", "!=", "<", ">=", "in", "?", ":", "+", "-", "*", "%", "/", "(", ")", "[", "]", ".", ","],
  ...["null", "true", "false", "1", "0", "-1", "1u", "1e308", "9223372036854775807", "9223372036854775808", "0x1f"],
  ...['"', "'", '"\\u0000"', '"\\ud800"', 'b"x"', 'r"\\"', '"""', "//", "\n", "\0", "{", "}", "é", "__proto__"],
  ...["now", "node", "sessions", "fleet", "region", "duration(", "timestamp(", "ratio(", "size(", "has(", ".map(x, x)"],
  ...[".matches(", ".contains(", '.all(x, x == "y")', "string(", "int(", "dyn(", "type(", "constructor", "toString()"],
  ...["(((((((((((((((((((((((((((((((((", "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!", "- - - - - -"],
  ...["(a+)+$", "x".repeat(300), "1+".repeat(600)],
];

const unusualValues: readonly (Value | null)[] = [
  null,
  "",
  "offline",
  "x".repeat(300),
  0,
  -0,
  0.5,
  1e300,
  8.64e15,
  -8.64e15,
  5,
];

/** CEL conditions, compiled and then evaluated with unusual values. */
export const createTarget = (): FuzzTarget<Input> => ({
  generate(random) {
    const text = random() < 0.03 ? randomBytes(random, 100) : mutatedText(random, pick(random, seeds), words);
    return { text, values: Array.from({ length: 8 }, () => pick(random, unusualValues)) };
  },
  run({ text, values }) {
    const compiled = compileExpression(text);
    if (!compiled.ok) {
      assert(compiled.error.length > 0, "an expression was rejected without a problem");
      for (const { message, offset } of compiled.error) {
        assert(message.length > 0 && message.length < 2_000, `the message has ${message.length} characters`);
        assert(offset >= 0 && offset <= text.length, `the error is at ${offset} of ${text.length} characters`);
      }
      return;
    }
    const { fields, evaluate } = compiled.value;
    assert(
      fields.length > 0 && fields.every((field) => FIELDS.includes(field)),
      "the expression reads an unknown field",
    );
    const result = evaluate(fields.map(({ type }, index) => valueFor(type, values[index % values.length]!)));
    assert(result === null || typeof result === "boolean", `the result is a ${typeof result}`);
  },
});

/** Returns the value if it has the type of the field; otherwise null. */
const valueFor = (type: (typeof FIELDS)[number]["type"], value: Value | null): Value | null =>
  value === null || (type === "string") === (typeof value === "string") ? value : null;
