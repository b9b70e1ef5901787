import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createTempFolder } from "../../harness/temp-folder.ts";
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

test("state import reads standard input, and names it in its errors", async () => {
  const folder = createTempFolder();
  const service = '{base_url: "https://proxy.internal", api_key: sesame}';
  const config = folder.write("proxywarden.yaml", `service: ${service}\nstate: {path: state}\n`);
  const usage = [MAIN, "state", "import", "-", "--config", config];
  const [invalid, binary] = await Promise.all([
    startProcess(process.execPath, usage, "no rows\n", COMPILE_CACHE).ended,
    startProcess("sh", ["-c", 'printf "\\377" | "$@"', "sh", process.execPath, ...usage], "", COMPILE_CACHE).ended,
  ]);
  expect(invalid).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^proxywarden: standard input can't be imported: line 1 is not the header/),
  });
  expect(binary).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^proxywarden: can't read standard input: it is not UTF-8/),
  });
});
