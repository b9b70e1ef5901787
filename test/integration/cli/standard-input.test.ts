import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createTempFolder } from "../folder.ts";
import { COMPILE_CACHE, startProcess } from "../process.ts";

const MAIN = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));

const runWithInput = (input: string, ...args: readonly string[]) =>
  startProcess(process.execPath, [MAIN, ...args], input, COMPILE_CACHE).ended;

const policyFile = (minutes: number) => `policies:
  - { name: reboot-offline, when: 'node.status == "offline"', for: ${minutes}m, steps: [{ action: reboot }] }
`;

test("policy diff and policy test read a file from standard input", async () => {
  const policies = createTempFolder().write("policies.yaml", policyFile(20));
  const tests = `policies: [${policies}]
tests:
  - name: a node that stays offline is rebooted
    nodes: [{ id: node_1, status: [online for 5m, offline] }]
    expect: [{ at: 30m, node: node_1, timer: firing }]
`;
  const [diff, tested] = await Promise.all([
    runWithInput(policyFile(15), "policy", "diff", "-", policies),
    runWithInput(tests, "policy", "test", "-"),
  ]);
  expect(diff).toMatchObject({ code: 0, out: expect.stringContaining("- for: 20m, was 15m"), err: "" });
  expect(tested).toMatchObject({ code: 0, out: expect.stringContaining("1 passed, 0 failed"), err: "" });
});
