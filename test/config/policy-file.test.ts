import { basename } from "node:path";
import { describe, expect, test } from "vitest";
import { formatProblem } from "../../src/config/diagnostics/problem.ts";
import { loadConfig } from "../../src/config/load.ts";
import { loadWith, sourceOf, withService } from "./config-fixtures.ts";

/** A policy file with policies of these names. */
const named = (...names: string[]): string =>
  `policies:\n${names.map((name) => `  - { name: ${name}, when: node.a, for: 1m, steps: [{ action: reboot }] }\n`).join("")}`;

const errorsOf = (text: string, files: Readonly<Record<string, string>>): string[] => {
  const loaded = loadWith(withService(text), files);
  return loaded.ok ? [] : loaded.error.map(formatProblem);
};

test("policies are ordered by the paths of their files, then by position", () => {
  const files = { "b.yaml": named("three", "one"), "a.yaml": named("two"), "B.yaml": named("zero") };
  const loaded = loadWith(withService("policies: [b.yaml, '*.yaml']\n"), files);
  expect(loaded.ok && loaded.value.policies.map(({ name }) => name)).toEqual(["zero", "two", "three", "one"]);
});

test("a configuration without policies is valid", () => {
  const loaded = loadWith(withService(""), { "a.yaml": "nonsense" });
  expect(loaded).toMatchObject({ ok: true, value: { policies: [], warnings: [] } });
  expect(loadWith(withService("policies: ['*.yaml']"), { "a.yaml": "policies: []\n" })).toMatchObject({
    ok: true,
    value: { policies: [] },
  });
});

test("globs are relative to the folder of the configuration", () => {
  const asked: unknown[] = [];
  const listFiles = (...question: unknown[]) => {
    asked.push(question);
    return ["/etc/proxywarden/policies/a.yaml"];
  };
  const readFile = (path: string) => ({ ok: true, value: named(basename(path, ".yaml")) }) as const;
  const source = sourceOf(withService("policies: [policies/*.yaml]\n"));
  const loaded = loadConfig({ ...source, file: "/etc/proxywarden/p.yaml", listFiles, readFile });
  expect(loaded.ok && [asked, loaded.value.policies[0]?.name]).toEqual([
    [["policies/*.yaml", "/etc/proxywarden"]],
    "a",
  ]);
});

describe("reports", () => {
  test("a policy where the globs of policy files belong", () => {
    const expected = "must be a glob of policy files, such as policies/*.yaml; policies belong in such a file";
    expect(errorsOf(named("a"), {})).toEqual([`p.yaml:3:5: policies[0]: found a mapping; ${expected}`]);
  });

  test("if a glob finds no file", () => {
    expect(errorsOf("policies: [policies/*.yml]\n", {})).toEqual([
      'p.yaml:2:12: policies[0]: found "policies/*.yml"; must match at least one file',
    ]);
  });

  test("if a file that was found can't be read", () => {
    const source = sourceOf(withService("policies: ['*.yaml']\n"));
    const listFiles = () => ["a.yaml"];
    const readFile = (path: string) =>
      path === "a.yaml"
        ? ({ ok: false, error: "can't read a.yaml: EACCES" } as const)
        : ({ ok: true, value: "x" } as const);
    const loaded = loadConfig({ ...source, listFiles, readFile });
    expect(loaded.ok ? [] : loaded.error.map(formatProblem)).toEqual(["a.yaml:1:1: can't read a.yaml: EACCES"]);
  });

  test("if a name is given twice, with both places", () => {
    const files = { "a.yaml": named("one", "two"), "b.yaml": named("three", "two", "three") };
    expect(errorsOf("policies: ['*.yaml']\n", files)).toEqual([
      'b.yaml:3:13: policies[1].name: found "two"; must be unique, but it is already used at a.yaml:3:13',
      'b.yaml:4:13: policies[2].name: found "three"; must be unique, but it is already used at b.yaml:2:13',
    ]);
  });

  test("all other errors of all files at once", () => {
    const files = {
      "a.yaml": "policies:\n  - { name: one, when: node.wrong, for: 1m, steps: [{ action: reboot }] }\n",
      "b.yaml": "policy: []\n",
      "c.yaml": "policies: [\n",
    };
    expect(errorsOf("policies: ['*.yaml']\nlog: { level: inf }\n", files)).toEqual([
      'p.yaml:3:15: log.level: found "inf"; must be one of debug, info, warn, error; did you mean "info"?',
      'a.yaml:2:29: policies[0].when: found "wrong"; must be a CEL expression: something is wrong',
      "b.yaml:1:1: policies: missing; must be a list of policies, at most 200",
      "b.yaml:1:1: policy: unknown key; must be one of policies",
      "c.yaml:2:1: not valid YAML: flow sequence in block collection must be sufficiently indented and end with a ]",
    ]);
  });

  test.each([
    ["- name: p\n  when: x\nfor: 1m\nsteps: []\n", /^3:1: not valid YAML: /],
    [
      "policies:\n\t- name: p\n\t  when: x\n",
      "2:1: not valid YAML: tabs are not allowed as indentation; use spaces, in every line",
    ],
    [
      "policies:\n  - name: p\n\twhen: x\n    for: 1m\n",
      "3:1: not valid YAML: tabs are not allowed as indentation; use spaces, in every line",
    ],
    [
      "policies:\n  - name: p\n    when: x\n     for: 1m\n",
      /^3:11: not valid YAML: .*; quote a value that contains ": ", and indent the keys of a mapping equally$/,
    ],
    ["policies: {p: {when: node.a}}\n", "1:1: policies: found a mapping; must be a list of policies, at most 200"],
  ])("as one error for one mistake: %j", (text, expected) => {
    expect(errorsOf("policies: ['a.yaml']\n", { "a.yaml": text })).toEqual([
      typeof expected === "string"
        ? `a.yaml:${expected}`
        : expect.stringMatching(new RegExp(`^a.yaml:${expected.source.slice(1)}`)),
    ]);
  });

  test("if there are too many files", () => {
    const files = Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`${index}.yaml`, named(`n${index}`)]));
    expect(errorsOf("policies: ['*.yaml']\n", files)).toEqual([
      "p.yaml:1:1: found 201 policy files; must be at most 200",
    ]);
  });
});

test("policies of an invalid configuration are not checked for unknown names", () => {
  const policy = "policies:\n  - { name: a, when: b, for: 1m, steps: [{ action: notify, receiver: oncall }] }\n";
  const text = "policies: [a.yaml]\nreceivers: [{ name: oncall }]\n";
  expect(errorsOf(text, { "a.yaml": policy })).toEqual([
    "p.yaml:3:13: receivers[0]: found the key name; must have exactly one of webhook_url, webhook_url_file, alertmanager, log",
  ]);
});
