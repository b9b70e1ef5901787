import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { runInProcess } from "../../cli/terminal.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { runCommand } from "../process.ts";

const CONFIG = `service:
  base_url: https://proxy.internal
  api_key_file: key
  usage_scale: ratio
web: { admin_token_file: key }
policies: [policies/*.yaml]
safety: { mode: approve, max_disrupted_per: { region: 2 } }
`;

const POLICY = `policies:
  - name: reboot-offline
    mode: enforce
    when: node.status == "offline"
    for: 15m
    steps: [{ action: reboot }]
`;

/** A folder with a configuration and one policy file in `policies`. */
function folderWith(config: string, policy: string) {
  const folder = createTempFolder();
  folder.write("key", "sesame\n");
  mkdirSync(folder.pathOf("policies"));
  folder.write("policies/offline.yaml", policy);
  return { file: folder.write("proxywarden.yaml", config), policies: folder.pathOf("policies/offline.yaml") };
}

test("check prints the most nodes that policies can act on, under each safety.mode", async () => {
  const { file, policies } = folderWith(CONFIG, POLICY);
  const { code, out, err } = await runCommand("check", "--config", file);
  const worstCase =
    "6 per hour, 5 at once and at most 5% of the fleet; in one region 6 per hour, 2 at once; in one country 6 per hour, 5 at once";
  expect(out.trimEnd().split("\n")).toEqual([
    `${file}: valid`,
    "1 policy; maximum number of nodes that policies can act on, by safety.mode:",
    "  dry_run             none",
    `  approve (in force)  ${worstCase}; after approval: reboot-offline`,
    `  enforce             ${worstCase}; automatically: reboot-offline`,
    "limits for this fleet: the fleet size is unknown; pass --nodes, or ask the service with --probe",
    "enforces nothing because",
    "  safety.mode is approve: an operator must approve each action",
  ]);
  expect({ code, err }).toEqual({
    code: 0,
    err: `warning: ${policies}:3:11: policies[0].mode: enforce is above safety.mode, which limits it to approve\n`,
  });
});

test("check --output json prints the same", async () => {
  const { file } = folderWith(CONFIG, POLICY);
  const { out } = await runInProcess("check", "--output", "json", "--config", file);
  const report = JSON.parse(out) as { worst_case: { in_force: string; modes: object } };
  const none = { fleet: 0, region: 0, country: 0 };
  expect(report.worst_case).toEqual({
    in_force: "approve",
    modes: {
      dry_run: { policies: { approve: [], enforce: [] }, nodes_per_hour: none, nodes_at_once: none },
      approve: {
        policies: { approve: ["reboot-offline"], enforce: [] },
        nodes_per_hour: { fleet: 6, region: 6, country: 6 },
        nodes_at_once: { fleet: 5, region: 2, country: 5 },
      },
      enforce: {
        policies: { approve: [], enforce: ["reboot-offline"] },
        nodes_per_hour: { fleet: 6, region: 6, country: 6 },
        nodes_at_once: { fleet: 5, region: 2, country: 5 },
      },
    },
  });
});

test("check and run reject a typo in an expression, with its line and column in the policy file", async () => {
  const { file, policies } = folderWith(CONFIG, POLICY.replace("node.status", "node.stauts"));
  const [checked, run] = await Promise.all([
    runInProcess("check", "--config", file),
    runInProcess("run", "--config", file),
  ]);
  const line = `${policies}:4:11: policies[0].when: found "node.stauts == \\"offline\\""; must be a CEL expression: unknown field node.stauts; did you mean node.status?`;
  expect([checked.code, checked.err]).toEqual([1, `${line}\n`]);
  expect([run.code, run.err]).toEqual([1, `proxywarden: ${line}\n`]);
});

test("check and run name the line and column of secrets and certificates that can't be used", async () => {
  const folder = createTempFolder();
  folder.write("key", "two\nlines\n");
  folder.write("ca.pem", "no certificate\n");
  folder.write("state", "not a folder\n");
  const file = folder.write(
    "proxywarden.yaml",
    `service:
  base_url: https://proxy.internal
  api_key_file: key
  ca_file: ca.pem
  usage_scale: ratio
prometheus: { url: "http://p", authorization: { credentials_file: key } }
receivers:
  - name: oncall
    webhook_url_file: key
state: { path: state }
`,
  );
  const lines = (await runInProcess("check", "--config", file)).err.split("\n");
  const secret = `secret file ${folder.pathOf("key")} holds more than one line`;
  expect(lines).toEqual([
    expect.stringContaining(`${file}:3:17: service.api_key_file: ${secret}`),
    `${file}:4:12: service.ca_file: PEM file ${folder.pathOf("ca.pem")} holds no PEM; it should begin with a line such as -----BEGIN CERTIFICATE-----`,
    expect.stringContaining(`${file}:6:67: prometheus.authorization.credentials_file: ${secret}`),
    expect.stringContaining(`${file}:9:23: receivers[0].webhook_url_file: ${secret}`),
    `${file}:10:16: state.path: ${folder.pathOf("state")} is not a folder`,
    "",
  ]);
  const run = await runInProcess("run", "--config", file);
  expect(run.err).toContain(`${file}:9:23: receivers[0].webhook_url_file: ${secret}`);
  const json = JSON.parse((await runInProcess("check", "--output", "json", "--config", file)).out);
  expect(json.errors[3]).toMatchObject({ file, line: 9, column: 23, path: "receivers[0].webhook_url_file" });
});

test.each([
  ["check", "--config"],
  ["policy", "test"],
])("%s prints a file that can't be read as an error with its name and a message in JSON", async (...command) => {
  const file = createTempFolder().pathOf("missing.yaml");
  const { code, out } = await runInProcess(...command, file, "--output", "json");
  const { errors = [], files = [] } = JSON.parse(out);
  expect(code).toBe(1);
  expect([...errors, ...files.flatMap((each: { readonly errors: readonly object[] }) => each.errors)]).toEqual([
    { file, message: expect.stringContaining("there is no such file") },
  ]);
});

test("check rejects a glob that matches no file", async () => {
  const { file } = folderWith(CONFIG.replace("*.yaml", "*.yml"), POLICY);
  const { code, err } = await runInProcess("check", "--config", file);
  expect(code).toBe(1);
  expect(err).toBe(`${file}:6:12: policies[0]: found "policies/*.yml"; must match at least one file\n`);
});

test("check warns about a cron schedule that exceeds the monthly calls", async () => {
  const text = CONFIG.replace(
    "policies: [policies/*.yaml]",
    'collect: { nodes: { cron: "*/5 * * * * *" } }\nlimits: { plan: starter }',
  );
  const { file } = folderWith(text, POLICY);
  const { code, err } = await runInProcess("check", "--config", file);
  expect(code).toBe(0);
  expect(err).toMatch(
    /warning: .*: collect\.nodes\.cron: runs every 5s, which the plan's calls per month don't allow: \d+ of \d+ runs are skipped/,
  );
});
