import { describe, expect, test } from "vitest";
import { configErrors, loadConfigText, withService } from "../config-fixtures.ts";

describe("the first error of invalid YAML is reported:", () => {
  test.each([
    [
      "log: level: info\nweb: {\n",
      [
        '1:6: not valid YAML: nested mappings are not allowed in compact mappings; quote a value that contains ": ", and indent the keys of a mapping equally',
      ],
    ],
    [
      'policies: ["a.yaml"]\nlog:\n  level: "node.status == "offline""\n',
      ["3:27: not valid YAML: unexpected scalar at node end; put the whole value in quotes: ' if it contains \""],
    ],
    [
      "receivers:\n  - name: oncall\n    log: true\n   url: x\n",
      ["4:1: not valid YAML: sequence item without - indicator; indent the keys of a list item equally"],
    ],
    ['log: "info', ['1:6: not valid YAML: the quote " is never closed']],
    ["web: {}\nlog: 'info\nstate: {}\n", ["2:6: not valid YAML: the quote ' is never closed"]],
    [
      "when: a ? b : c",
      [
        '1:7: not valid YAML: nested mappings are not allowed in compact mappings; quote a value that contains ": ", and indent the keys of a mapping equally',
      ],
    ],
    ["log:\n\tlevel: info\n", ["2:1: not valid YAML: tabs are not allowed as indentation; use spaces, in every line"]],
    [
      "log: !secret x",
      [
        "1:6: found the tag !secret; must have no tag, or one of !!str, !!int, !!float, !!bool, !!null, !!map, !!seq; quote a text that begins with !",
      ],
    ],
    ["%TAG\n---\nlog: 1", ["1:1: not valid YAML: %TAG directive should contain exactly two parts"]],
    ["log: {}\n---\nweb: {}\n", ["2:1: found a second document; must be the only document of its file"]],
  ])("%j", (text, expected) => {
    expect(configErrors(text)).toEqual(expected);
  });
});

test.each(["", "\n\n", "# nothing but a comment\n", "---\n", "\uFEFF"])("%j is reported as an empty file", (text) => {
  expect(configErrors(text)).toEqual(["1:1: the file is empty; it must hold a mapping of keys and values"]);
});

test.each([
  ["just words", '1:1: found "just words"'],
  ["- a\n- b", "1:1: found a list"],
  ["~", "1:1: found nothing"],
])("%j is not a mapping", (text, found) => {
  expect(configErrors(text)).toEqual([
    `${found}; must be a mapping (keys: service, limits, collect, export, web, state, log, policies, safety, time_intervals, prometheus, alertmanager, receivers)`,
  ]);
});

test("a duplicate key is reported with the line of the first, besides the other errors", () => {
  expect(configErrors(withService("log:\n  level: info\n  levle: warn\n  level: error\nlog: {}\n"))).toEqual([
    '4:3: log.levle: unknown key; did you mean "level"?',
    '5:3: log.level: found the key "level" again; it is already given on line 3',
    '6:1: log: found the key "log" again; it is already given on line 2',
  ]);
});

test("a key that is a list is rejected", () => {
  expect(configErrors(withService("log:\n  ? [level]\n  : info\n"))).toEqual([
    "3:5: log: found a key that is a list, a mapping or an alias; must be a word",
  ]);
});

test("lines and columns are right in a file with Windows line breaks", () => {
  expect(configErrors(withService("log:\r\n  level: inf\r\n").replace("\n", "\r\n"))).toEqual([
    '3:10: log.level: found "inf"; must be one of debug, info, warn, error; did you mean "info"?',
  ]);
});

test("a long value is truncated", () => {
  const [error] = configErrors(withService(`log: { level: ${"x".repeat(500)} }`));
  expect(error).toMatch(/found "x{60}…"; must be/);
});

describe("anchors", () => {
  test("are expanded, and merge keys add absent keys", () => {
    const text = [
      "collect:",
      "  nodes: &slow { every: 5m }",
      "  sessions: *slow",
      "  stats: { <<: *slow }",
      "limits:",
      "  node_management: &limit { requests: 10, window: 10s }",
      "  session_monitoring: { <<: [*limit, { burst: 33, requests: 5 }], requests: 20 }",
    ].join("\n");
    const { collect, limits } = loadConfigText(withService(text));
    expect([collect.sessions, collect.stats]).toEqual([
      { kind: "every", intervalMs: 300_000 },
      { kind: "every", intervalMs: 300_000 },
    ]);
    expect(limits.session_monitoring).toEqual({ requests: 20, burst: 33, windowMs: 10_000 });
  });

  test("lead to the position of the invalid value", () => {
    expect(
      configErrors(withService("collect:\n  nodes: &slow { every: 5 }\n  stats: { <<: *slow }\n")).map((line) =>
        line.slice(0, 27),
      ),
    ).toEqual(["3:25: collect.nodes.every: ", "3:25: collect.stats.every: "]);
  });

  test.each([
    ["log: *none", '2:6: log: found "*none"; must name an anchor that comes before it and does not contain it'],
    [
      "log: &log { level: *log }",
      '2:20: log.level: found "*log"; must name an anchor that comes before it and does not contain it',
    ],
    [
      "log: &log { <<: *log }",
      '2:17: log: found "*log"; must name an anchor that comes before it and does not contain it',
    ],
    [
      "log: { <<: 5 }",
      "2:12: log: found a merge key << without a mapping; must name the anchor of a mapping, as in <<: *base",
    ],
    ['log: { "<<": 5 }', "2:8: log.<<: unknown key; must be one of level, format"],
  ])("that name no anchor are reported: %s", (text, expected) => {
    expect(configErrors(withService(text)).map((error) => error.replace('["<<"]', ".<<"))).toContain(expected);
  });

  test("that grow exponentially are rejected", () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"];
    for (let level = 1; level < 30; level += 1) lines.push(`a${level}: &a${level} [${`*a${level - 1}, `.repeat(9)}]`);
    expect(configErrors(lines.join("\n")).filter((error) => error.includes("too large"))).toHaveLength(1);
  });
});
