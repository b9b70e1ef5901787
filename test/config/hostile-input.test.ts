// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are YAML, and hold its variables
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ConfigProblem } from "../../src/config/diagnostics/problem.ts";
import { loadConfig } from "../../src/config/load.ts";
import { loadScenario } from "../../src/config/schema/scenario.ts";
import { compileExpression } from "../../src/policy/cel/expression.ts";
import { propertyRuns } from "../harness/run-length.ts";
import { checks, fileText, sourceOf, withService } from "./config-fixtures.ts";

const example = fileText("config/proxywarden.yaml");
const roughDay = fileText("config/scenarios/rough-day.yaml");
const env = { PROXYWARDEN_API_KEY: "sesame" };

/** A text with some of its parts cut out, doubled or replaced. */
const mutations = (text: string): fc.Arbitrary<string> => {
  const junk = fc.constantFrom(
    "",
    "\n",
    " ",
    ":",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "<<: *a",
    "!!",
    "|",
    ">",
    "'",
    '"',
    "#",
    "\t",
    "${",
    "${X}",
    "---\n",
    "~",
    "0x1",
    ".inf",
    "? ",
    "\0",
    "\uD800",
  );
  const cut = fc.record({ at: fc.nat(text.length), length: fc.nat(12), junk: fc.oneof(junk, fc.string()) });
  return fc
    .array(cut, { minLength: 1, maxLength: 6 })
    .map((cuts) =>
      cuts.reduce((result, { at, length, junk: put }) => result.slice(0, at) + put + result.slice(at + length), text),
    );
};

const words = [
  "service",
  "limits",
  "collect",
  "nodes",
  "every",
  "plan",
  "kind",
  "faults",
  "keys",
  "deny",
  "constructor",
];
const structures = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 5 }, fc.constantFrom(...words), fc.jsonValue({ maxDepth: 1 }), tie("map"), tie("list")),
  map: fc.dictionary(fc.oneof(fc.constantFrom(...words), fc.string()), tie("value"), { maxKeys: 4 }),
  list: fc.array(tie("value"), { maxLength: 3 }),
})).map;

const texts = (valid: string) =>
  fc.oneof(
    mutations(valid),
    fc.string({ unit: "binary" }),
    structures.map((value) => JSON.stringify(value)),
  );

function expectPositions(text: string, problems: readonly ConfigProblem[]): void {
  const lines = text.split("\n").length;
  expect(problems.length).toBeGreaterThan(0);
  for (const { line, column, expected, message } of problems) {
    expect(line >= 1 && line <= lines && column >= 1).toBe(true);
    expect(expected.length > 0 && message.length > 0).toBe(true);
    expect(message).not.toMatch(/\[object|undefined|Invalid input|Unrecognized/);
  }
  const places = problems.map(({ line }) => line);
  expect(places).toEqual(places.toSorted((one, other) => one - other));
}

describe("any file is loaded, or rejected with a position:", () => {
  test("a configuration", () => {
    fc.assert(
      fc.property(texts(example), (text) => {
        const loaded = loadConfig(sourceOf(text, env));
        if (!loaded.ok) expectPositions(text, loaded.error);
      }),
      propertyRuns(500),
    );
  });

  test("a policy, including its expressions", () => {
    const main = withService(
      "policies: [a.yaml]\nalertmanager: { url: 'http://h' }\nreceivers: [{ name: oncall, alertmanager: true }]\n",
    );
    fc.assert(
      fc.property(texts(fileText("config/policies/failing-sessions.yaml")), (text) => {
        const loaded = loadConfig({
          ...sourceOf(main, env),
          checks: { ...checks, expression: compileExpression },
          readFile: (path) => ({ ok: true, value: path === "a.yaml" ? text : "sesame" }),
          listFiles: () => ["a.yaml"],
        });
        if (!loaded.ok) expectPositions(text, loaded.error);
      }),
      propertyRuns(500),
    );
  });

  test("a scenario", () => {
    fc.assert(
      fc.property(texts(roughDay), (text) => {
        const loaded = loadScenario({ file: "p.yaml", text, env });
        if (!loaded.ok) expectPositions(text, loaded.error);
      }),
      propertyRuns(300),
    );
  });
});
