// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are YAML, and hold its variables
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseYaml } from "../../../src/config/yaml-reader.ts";
import { configErrors, loadConfigText, withService } from "../config-fixtures.ts";

test.each([
  ["no variable", "no variable"],
  ["${HOST}", "h"],
  ["https://${HOST}:${PORT}/${HOST}", "https://h:80/h"],
  ["$${HOST}", "${HOST}"],
  ["$$${HOST}", "$${HOST}"],
  ["$HOST costs $5", "$HOST costs $5"],
  ["${EMPTY}", ""],
  ["${NESTED}", "${HOST}"],
])("%j becomes %j", (text, expected) => {
  const env = { HOST: "h", PORT: "80", EMPTY: "", NESTED: "${HOST}" };
  expect(parseYaml({ file: "a.yaml", text: `"${text}"`, env })).toMatchObject({ value: expected, findings: [] });
});

const NAME_EXPECTED = "must name an environment variable, as in ${NAME}; for a literal ${ write $${";

test.each([
  ["${GONE}", '"${GONE}"; the environment variable GONE must be set'],
  ["a ${} b", `"\${}"; ${NAME_EXPECTED}`],
  ["${no-name}", `"\${no-name}"; ${NAME_EXPECTED}`],
  ["${1st}", `"\${1st}"; ${NAME_EXPECTED}`],
  ["${OPEN", `"\${"; ${NAME_EXPECTED}`],
])("%j is rejected with the name of the variable and its key", (text, expected) => {
  expect(configErrors(withService(`state: { path: '${text}' }`))).toEqual([`2:16: state.path: found ${expected}`]);
});

describe("a variable", () => {
  test("may hold a number, a boolean or a word where one is expected", () => {
    const text = 'export: { series_max: "${N}" }\nlog:\n  level: ${LEVEL}\nweb: { listen: "0.0.0.0:${PORT}" }\n';
    const read = loadConfigText(withService(text), { N: "5000", LEVEL: "warn", PORT: "8080" });
    expect([read.export.seriesMax, read.log.level, read.web.listen.port]).toEqual([5_000, "warn", 8_080]);
  });

  test("of digits remains text where text is expected", () => {
    const read = loadConfigText("service:\n  base_url: https://h\n  api_key: ${KEY}\n", { KEY: "0123" });
    expect(read.service.api_key).toBe("0123");
  });

  test("with an invalid value is quoted with its name", () => {
    expect(configErrors(withService("export:\n  series_max: ${N}\n"), { N: "5k" })).toEqual([
      '3:15: export.series_max: found "5k" from ${N}; must be a whole number from 1000 to 100000000',
    ]);
  });

  test("inside braces must be quoted", () => {
    expect(configErrors("log: { level: ${LEVEL} }\npolicies:\n  - a.yaml\n")).toEqual([
      '1:16: not valid YAML: a variable here must be quoted: inside { } or [ ], write "${NAME}"',
    ]);
  });

  test("in a key is not replaced", () => {
    expect(configErrors(withService("${KEY}: 5\n"), { KEY: "log" })).toEqual([
      '2:1: ["${KEY}"]: unknown key; must be one of service, limits, collect, export, web, state, log, policies, safety, time_intervals, prometheus, alertmanager, receivers',
    ]);
  });
});

test("a variable never adds structure", () => {
  const hostile = fc.constantFrom(
    "\n",
    "x: 1",
    "\nlog: {}",
    "- ",
    "[a]",
    "{a: b}",
    "*a",
    "&a",
    "#",
    "'",
    '"',
    "${HOME}",
    "~",
    "<<: ",
  );
  const values = fc
    .array(fc.oneof(hostile, fc.string()), { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(values, (value) => {
      const quoted = loadConfigText(withService('state: { path: "/x${VALUE}" }'), { VALUE: value });
      const plain = loadConfigText(withService("state:\n  path: /x${VALUE}\n"), { VALUE: value });
      expect([quoted.state.path, plain.state.path]).toEqual([`/x${value}`, `/x${value}`]);
    }),
  );
});
