import { expect, test } from "vitest";
import { configErrors, loadConfigText, withService } from "../config-fixtures.ts";

const links = (keys: string) => withService(`web: { links: { ${keys} } }`);

test("the status page has no links to other systems unless they are given, without a trailing slash", () => {
  expect(loadConfigText(withService("")).web.links).toEqual({});
  expect(
    loadConfigText(links("runbook: https://docs.example.net/runbook, grafana: https://g.example.net/")).web.links,
  ).toEqual({ runbook: "https://docs.example.net/runbook", grafana: "https://g.example.net" });
});

test.each([
  ["runbook: 'javascript:alert(1)'", "must be an http or https URL"],
  ["runbook: 'https://docs.example.net/runbook#alerts'", "must be a URL without a query or fragment"],
  ["grafana: 'https://g.example.net/?orgId=1'", "must be a URL without a query or fragment"],
  ["wiki: https://wiki.example.net", "wiki"],
])("%s is rejected", (keys, problem) => {
  expect(configErrors(links(keys))).toEqual([expect.stringContaining(problem)]);
});
