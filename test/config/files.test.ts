import { readdirSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { config, fileText, scenario, warnings } from "./reading.ts";
import { validatorOf } from "./validator.ts";

const env = { PROXYWARDEN_API_KEY: "sesame" };

const files = readdirSync(new URL("../../config", import.meta.url), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath.replace(/^.*\/config(?=\/|$)/, "config").replace(/\/$/, "")}/${entry.name}`);

/** The schema that the first line of a file names for editors. */
function schemaOf(path: string): object {
  const [, relative] = /^# yaml-language-server: \$schema=(\S+)$/m.exec(fileText(path)) ?? [];
  const { pathname } = new URL(String(relative), `file:///${path}`);
  return JSON.parse(fileText(pathname.slice(1)));
}

test.each(files)("%s is what it says it is", async (path) => {
  if (path.endsWith(".schema.json")) {
    const schema = JSON.parse(fileText(path));
    expect(schema.$schema).toBe("http://json-schema.org/draft-07/schema#");
    expect(await validatorOf(schema)).toBeTypeOf("function");
    return;
  }
  const judge = await validatorOf(schemaOf(path));
  expect(await judge(parse(fileText(path)))).toBeNull();
  if (path.startsWith("config/scenarios/")) expect(scenario(fileText(path)).nodes).toBeGreaterThan(0);
  else expect(warnings(fileText(path), env)).toEqual([]);
});

test("the example is the configuration that one gets without it, but for what has no default", () => {
  const example = config(fileText("config/proxywarden.yaml"), env);
  const { base_url, api_key, usage_scale } = example.service;
  const least = `service: { base_url: "${base_url}", api_key: ${api_key}, usage_scale: ${usage_scale} }`;
  expect(example).toEqual(config(least));
});

test("the folder holds the files that people are told of", () => {
  const expected = ["proxywarden.schema.json", "proxywarden.yaml", "rough-day.yaml", "scenario.schema.json"];
  expect(files.map((path) => basename(path)).toSorted()).toEqual(expect.arrayContaining(expected));
});
