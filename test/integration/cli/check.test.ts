import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { createTempFolder } from "../folder.ts";
import { runCommand } from "../process.ts";

const CONFIG = `service:
  base_url: https://proxy.example.net
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

test("check says what the policies could touch at worst, and what would be under another mode", async () => {
  const { file, policies } = folderWith(CONFIG, POLICY);
  const { code, out, err } = await runCommand("check", "--config", file);
  const reach =
    "6 per hour, 5 at once and at most 5% of the fleet; of one region 6, 2 at once; of one country 6, 5 at once";
  expect(out.trimEnd().split("\n")).toEqual([
    `${file}: valid`,
    "1 policy; most nodes that policies can act on, by safety.mode:",
    "  dry_run             none",
    `  approve (in force)  ${reach}; after approval: reboot-offline`,
    `  enforce             ${reach}; automatically: reboot-offline`,
    "limits for this fleet: the fleet size is unknown; pass --nodes",
  ]);
  expect({ code, err }).toEqual({
    code: 0,
    err: `warning: ${policies}:3:11: policies[0].mode: enforce is above safety.mode, which limits it to approve\n`,
  });
});

test("--output json gives the same for machines", async () => {
  const { file } = folderWith(CONFIG, POLICY);
  const { out } = await runCommand("check", "--output", "json", "--config", file);
  const read = JSON.parse(out) as { worst_case: { in_force: string; modes: object } };
  const none = { fleet: 0, region: 0, country: 0 };
  expect(read.worst_case).toEqual({
    in_force: "approve",
    modes: {
      dry_run: { acting: [], asking: [], nodes_an_hour: none, nodes_at_once: none },
      approve: {
        acting: [],
        asking: ["reboot-offline"],
        nodes_an_hour: { fleet: 6, region: 6, country: 6 },
        nodes_at_once: { fleet: 5, region: 2, country: 5 },
      },
      enforce: {
        acting: ["reboot-offline"],
        asking: [],
        nodes_an_hour: { fleet: 6, region: 6, country: 6 },
        nodes_at_once: { fleet: 5, region: 2, country: 5 },
      },
    },
  });
});

test("a typo in an expression ends with 1, at its line and column in the policy file, for check and for run", async () => {
  const { file, policies } = folderWith(CONFIG, POLICY.replace("node.status", "node.stauts"));
  const [checked, run] = await Promise.all([
    runCommand("check", "--config", file),
    runCommand("run", "--config", file),
  ]);
  const line = `${policies}:4:11: policies[0].when: found "node.stauts == \\"offline\\""; must be a CEL expression: unknown field node.stauts; did you mean node.status?`;
  expect([checked.code, checked.err]).toEqual([1, `${line}\n`]);
  expect([run.code, run.err]).toEqual([1, `proxywarden: ${line}\n`]);
});

test("a glob that finds nothing ends with 1: no policy is lost without a word", async () => {
  const { file } = folderWith(CONFIG.replace("*.yaml", "*.yml"), POLICY);
  const { code, err } = await runCommand("check", "--config", file);
  expect(code).toBe(1);
  expect(err).toBe(`${file}:6:12: policies[0]: found "policies/*.yml"; must find at least one file\n`);
});

test("check warns of a cron schedule that the month can't carry", async () => {
  const text = CONFIG.replace(
    "policies: [policies/*.yaml]",
    'collect: { nodes: { cron: "*/5 * * * * *" } }\nlimits: { plan: starter }',
  );
  const { file } = folderWith(text, POLICY);
  const { code, err } = await runCommand("check", "--config", file);
  expect(code).toBe(0);
  expect(err).toMatch(
    /warning: .*: collect\.nodes\.cron: runs every 5s, which the plan's calls a month don't allow: \d+ of \d+ runs are skipped/,
  );
});
