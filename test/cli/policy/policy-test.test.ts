import { describe, expect, test } from "vitest";
import { runPolicyTests as runTests } from "../../../src/cli/policy/policy-test.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { captureOutput } from "../terminal.ts";

const run = (files: readonly string[], output: "text" | "json" = "text") =>
  captureOutput((context) => runTests({ output }, context, files));

const POLICY_FILE = `policies:
  - name: reboot-offline
    when: node.status == "offline"
    for: 5m
    steps: [{ action: reboot, verify: { within: 5m } }, { action: notify, receiver: oncall }]
    windows: [nights]
    blocked_by: [{ query: up }]
`;

const TEST_FILE = `policies: [policy.yaml]
start: 2026-03-01T23:30:00Z
time_intervals: [{ name: nights, times: [{ start_time: "23:00", end_time: "24:00" }] }]
tests:
  - name: an offline node is rebooted at night
    nodes: [{ id: node_1, status: [online for 5m, offline] }]
    expect:
      - { at: 8m, node: node_1, verdict: "true", timer: pending, actions: [] }
      - { at: 13m, node: node_1, timer: firing, actions: [reboot] }
`;

/** Writes a policy and its tests, with replacements in the tests, and returns the path of the tests. */
function folderWith(replaced: readonly (readonly [string, string])[] = [], policy = POLICY_FILE) {
  const folder = createTempFolder();
  folder.write("policy.yaml", policy);
  const text = replaced.reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`${from} is not in it`);
    return changed.replace(from, to);
  }, TEST_FILE);
  return folder.write("tests.yaml", text);
}

test("windows and receivers need no configuration: a test defines its own times and notifies no receiver", async () => {
  const file = folderWith();
  expect(await run([file])).toEqual({
    code: 0,
    err: "",
    out: `${file}\n  ok    an offline node is rebooted at night\n1 passed, 0 failed\n`,
  });
});

test("a failure shows its position, the expected and the actual value, and every reason", async () => {
  const file = folderWith([["23:30:00Z", "11:30:00Z"]]);
  const { code, out } = await run([file]);
  expect(code).toBe(1);
  expect(out).toBe(`${file}
  FAIL  an offline node is rebooted at night
        ${file}:9:9: at 13m, node_1 by reboot-offline: actions: expected reboot, got none
            window: outside nights; opens at 2026-03-01 23:00 UTC
0 passed, 1 failed
`);
  const held = folderWith([
    ["23:30:00Z", "11:30:00Z"],
    ["actions: [reboot]", "held: []"],
  ]);
  expect((await run([held])).out).toMatch(/held: expected none, got window\n {12}window: .*nights/);
});

test("a verdict may be written without quotes", async () => {
  expect((await run([folderWith([['verdict: "true"', "verdict: true"]])])).out).toMatch(/1 passed, 0 failed\n$/);
  const failed = await run([folderWith([['verdict: "true"', "verdict: false"]])]);
  expect(failed.out).toContain("at 8m, node_1 by reboot-offline: verdict: expected false, got true\n");
});

test("before the first walk the verdict is unknown, and no action was taken", async () => {
  const early = folderWith([
    [
      'at: 8m, node: node_1, verdict: "true", timer: pending',
      "at: 0s, node: node_1, verdict: unknown, timer: inactive",
    ],
  ]);
  expect((await run([early])).out).toMatch(/1 passed, 0 failed\n$/);
  const failed = await run([folderWith([["at: 8m", "at: 0s"]])]);
  expect(failed).toMatchObject({ code: 1, err: "" });
  expect(failed.out).toContain("verdict: expected true, got unknown (the node has not been read)\n");
});

test("the command ends when the process is asked to stop", async () => {
  const file = folderWith();
  const stopped = captureOutput((context) =>
    runTests({ output: "text" }, { ...context, stop: AbortSignal.abort() }, [file]),
  );
  expect(await stopped).toEqual({ code: 1, out: "", err: "proxywarden: stopped\n" });
});

test("a policy is blocked when the test says so", async () => {
  const file = folderWith([
    ["    expect:", "    blocked: [no for 2m, yes]\n    expect:"],
    ["timer: firing, actions: [reboot]", "timer: firing, held: [blocked_by], actions: []"],
  ]);
  expect((await run([file])).out).toMatch(/1 passed, 0 failed\n$/);
});

test("safety.protected may read details that no policy reads", async () => {
  const safety = "safety: { protected: node.cpu_usage > 0.5 }\ntests:";
  expect((await run([folderWith([["tests:", safety]])])).out).toMatch(/1 passed, 0 failed\n$/);
});

test("with as_written, a policy in dry_run sends nothing, and its actions are dry runs", async () => {
  const file = folderWith([
    ["policies:", "mode: as_written\npolicies:"],
    ["actions: [reboot]", 'actions: ["reboot"], held: []'],
  ]);
  const { out } = await run([file]);
  expect(out).toMatch(/1 passed, 0 failed\n$/);
});

test("--output json prints every test, and every failure with its position", async () => {
  const file = folderWith([["actions: [reboot]", "actions: []"]]);
  const { code, out } = await run([file], "json");
  expect(code).toBe(1);
  expect(JSON.parse(out)).toEqual({
    passed: false,
    files: [
      {
        file,
        errors: [],
        tests: [
          {
            name: "an offline node is rebooted at night",
            passed: false,
            misses: [
              {
                line: 9,
                column: 9,
                text: "at 13m, node_1 by reboot-offline: actions: expected none, got reboot",
              },
            ],
          },
        ],
      },
    ],
  });
});

describe("an invalid file exits with 1 and the position of each error:", () => {
  test.each<readonly [from: string, to: string, error: RegExp]>([
    ["online for 5m", "onlin for 5m", /tests\.yaml:6:\d+: tests\[0\]\.nodes\[0\]\.status\[0\]: .*must be a status/],
    ["online for 5m", "online", /must have a duration, as in "online for 10m"/],
    [
      "at: 8m, node: node_1",
      "at: 8m, node: node_2",
      /tests\.yaml:8:\d+: .*expect\[0\]\.node: found "node_2"; must be a node of the test: node_1/,
    ],
    ["at: 8m", "at: 8m, policy: other", /found "other"; must be one of the policies: reboot-offline/],
    ["actions: [reboot]", "actions: [rebot]", /must be disconnect, reboot, forced reboot or quarantine/],
    [
      "name: nights",
      "name: days",
      /policy\.yaml:6:\d+: policies\[0\]\.windows\[0\]: .*must be the name of a time interval: days/,
    ],
    ["policy.yaml", "none.yaml", /must match at least one file/],
    ["expect:", "expects:", /unknown key; did you mean "expect"\?/],
    ["id: node_1", "id: fleet_1", /must be unique, and not an id such as fleet_1/],
  ])("%s as %s", async (from, to, error) => {
    const { code, out, err } = await run([folderWith([[from, to]])]);
    expect(code).toBe(1);
    expect(err).toMatch(error);
    expect(out).toBe("0 passed, 0 failed, 1 invalid file\n");
  });

  test("an error in a policy is reported at its position", async () => {
    const { err } = await run([folderWith([], POLICY_FILE.replace("node.status", "node.stauts"))]);
    expect(err).toMatch(/policy\.yaml:3:11: policies\[0\]\.when: .*did you mean node\.status\?/);
  });

  test("with several policies each expectation must name one", async () => {
    const second = POLICY_FILE.replace("policies:\n", "").replace("reboot-offline", "second");
    const { err } = await run([folderWith([], POLICY_FILE + second)]);
    expect(err).toMatch(/tests\.yaml:8:\d+: .*must name one of the policies: reboot-offline, second/);
  });
});
