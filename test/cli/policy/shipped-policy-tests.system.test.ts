import { globSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { runPolicyTests } from "../../../src/cli/policy/policy-test.ts";
import { inRepository, textOf } from "../../deploy/manifest.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { captureOutput } from "../terminal.ts";

const examples = globSync("config/policies/tests/*.yaml", { cwd: inRepository(".") }).toSorted();
const runTests = (files: readonly string[]) =>
  captureOutput((context) => runPolicyTests({ output: "text" }, context, files));

test("the tests of the shipped policies pass", async () => {
  const { code, out, err } = await runTests(examples.map(inRepository));
  expect(out).not.toContain("FAIL");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out.trimEnd().split("\n").at(-1)).toBe("10 passed, 0 failed");
});

/** Changes to the shipped policies. */
const CHANGES = [
  ["offline.yaml", "for: 15m", "for: 45m"],
  ["hot-cpu.yaml", "> fleet.median.cpu_usage + 0.3", "> 0.3"],
  ["failing-sessions.yaml", "sessions.total >= 20", "sessions.total >= 2"],
  ["offline.yaml", "force: true", "force: false"],
  ["offline.yaml", 'duration("10m")', 'duration("1m")'],
  ["hot-cpu.yaml", "action: disconnect", "action: reboot"],
  ["failing-sessions.yaml", "region.online_ratio > 0.5", "region.online_ratio > 0.1"],
] as const;

describe("they fail under another policy:", () => {
  test.each(CHANGES)("%s with %j for %j", async (name, to, from) => {
    const folder = createTempFolder();
    const policy = textOf(`config/policies/${name}`);
    expect(policy).toContain(to);
    folder.write("policy.yaml", policy.replace(to, from));
    const tests = textOf(`config/policies/tests/${name}`).replace(`../${name}`, "policy.yaml");
    const { code, out } = await runTests([folder.write("tests.yaml", tests)]);
    expect(out).toContain("FAIL");
    expect(code).toBe(1);
  });
});
