import { expect, test } from "vitest";
import { configErrors, loadConfigText, withService } from "../config-fixtures.ts";

const postgres = (keys: string) => withService(`state: { postgres: { ${keys} } }`);

test("the state is a folder unless it is a database, which has a lease and a schema", () => {
  expect(loadConfigText(withService("")).state).toEqual({ path: "/var/lib/proxywarden" });
  expect(loadConfigText(postgres("url_file: /run/secrets/postgres")).state).toEqual({
    postgres: { url_file: "/run/secrets/postgres", lease: 15_000, schema: "proxywarden" },
  });
});

test.each([
  ["state: { path: a, postgres: { url_file: b } }", "must have either path or postgres"],
  ["state: {}", "must have either path or postgres"],
  ["state: { postgres: {} }", "state.postgres.url_file"],
  ["state: { postgres: { url_file: a, lease: 4s } }", "must be a duration from 5s to 5m"],
  ["state: { postgres: { url_file: a, lease: 6m } }", "must be a duration from 5s to 5m"],
  ["state: { postgres: { url_file: a, schema: '' } }", "state.postgres.schema"],
  ["state: { postgres: { url_file: a, public_url: 'javascript:1' } }", "must be an http or https URL"],
  [`state: { postgres: { url_file: a, schema: ${"é".repeat(32)} } }`, "must have at most 63 bytes"],
])("%s is rejected", (text, problem) => {
  expect(configErrors(withService(text))).toEqual([expect.stringContaining(problem)]);
});

test("a daemon has a name and a URL of its own if they are given", () => {
  const { postgres: given } = loadConfigText(
    postgres("url_file: a, instance: proxywarden-1, public_url: https://proxywarden-1.example.net:9713"),
  ).state;
  expect(given).toMatchObject({ instance: "proxywarden-1", public_url: "https://proxywarden-1.example.net:9713" });
});

test("a schema may have any name", () => {
  expect(loadConfigText(postgres(`url_file: a, schema: 'our "own" state'`)).state.postgres?.schema).toBe(
    'our "own" state',
  );
});
