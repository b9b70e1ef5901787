import { expect, test } from "vitest";
import { runPolicyDiff } from "../../../src/cli/policy/policy-diff.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { captureOutput, runInProcess } from "../terminal.ts";

const POLICY = `policies:
  - name: reboot-offline
    mode: dry_run
    when: node.status == "offline"
    for: 15m
    steps: [{ action: reboot }]
`;

const diff = (files: readonly string[], output: "text" | "json" = "text") =>
  captureOutput((context) => runPolicyDiff({ output }, context, files));

test("policy diff shows which nodes are newly acted on, and which no longer", async () => {
  const folder = createTempFolder();
  const before = folder.write("before.yaml", POLICY);
  const after = folder.write("after.yaml", POLICY.replace("dry_run", "enforce").replace("15m", "20m"));
  expect(await diff([before, after])).toEqual({
    code: 0,
    err: "",
    out: `reboot-offline
  + mode: enforce, was dry_run
  - for: 20m, was 15m

+ acts on more nodes, or earlier; - acts on fewer nodes, or later; ~ other change
`,
  });
  expect(JSON.parse((await diff([before, after], "json")).out)).toEqual({
    differences: [
      { policy: "reboot-offline", key: "mode", effect: "more", text: "enforce, was dry_run" },
      { policy: "reboot-offline", key: "for", effect: "less", text: "20m, was 15m" },
    ],
  });
  expect(await diff([before, before])).toEqual({ code: 0, err: "", out: "no difference between the policies\n" });
});

test.each([
  ["diff", "-", "-"],
  ["test", "-", "-"],
  ["backtest", "--policies", "-", "-"],
])("policy %s refuses to read standard input twice", async (...args) => {
  expect(await runInProcess("policy", ...args)).toEqual({
    code: 2,
    out: "",
    err: "proxywarden: standard input (-) can be given only once\n",
  });
});

test("a configuration is compared by its policies", async () => {
  const folder = createTempFolder();
  const policies = folder.write("policies.yaml", POLICY);
  const service = "service: { base_url: https://proxy.example.net, api_key: sesame, usage_scale: ratio }\n";
  const config = folder.write("proxywarden.yaml", `${service}policies: [policies.yaml]\n`);
  expect((await diff([policies, config])).out).toBe("no difference between the policies\n");
});

test("invalid and missing files exit with 1, and both are reported", async () => {
  const folder = createTempFolder();
  const wrong = folder.write("wrong.yaml", POLICY.replace("node.status", "node.stauts"));
  const { code, out, err } = await diff([folder.pathOf("none.yaml"), wrong]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toMatch(/^can't read .*none\.yaml.*\n.*wrong\.yaml:4:11: .*did you mean node\.status\?\n$/);
});
