import { expect, test } from "vitest";
import { inlineSecret } from "../../../src/platform/secret-file.ts";
import { runInProcess } from "../../cli/terminal.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { recordingCommands, sampleRemediation } from "../../web/api/remediation-view-fixture.ts";
import { adminOperators, startTestServer } from "../../web/http/test-server.ts";
import { runCommand } from "../process.ts";

test("operator commands, approvals and explain reach the daemon and exit with 0", async () => {
  const recorded: string[][] = [];
  const { url } = await startTestServer({
    remediation: () => sampleRemediation(),
    execute: recordingCommands(recorded),
    operators: () => adminOperators(inlineSecret("sesame-open")),
  });
  const access = ["--url", url, "--token-file", createTempFolder().write("token", "sesame-open\n")];
  const results = await Promise.all([
    runCommand("hold", "node_1", "--reason", "disk swap", ...access),
    runInProcess("approve", "act-3", ...access),
    runInProcess("approvals", "--url", url),
    runInProcess("explain", "node_1", "--url", url, "--at", "2026-11-21T03:15:00Z"),
    runInProcess("explain", "node_1", "--url", url, "--output", "json"),
  ]);
  for (const { code, err } of results) expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(recorded.toSorted()).toEqual([
    ["approve", "act-3"],
    ["hold", "node_1", "disk swap"],
  ]);
  const [hold, approve, approvals, explain, json] = results.map(({ out }) => out);
  expect([hold, approve]).toEqual(["hold is done\n", "approve is done\n"]);
  expect(approvals).toMatch(/^act-3 {2}quarantine for 1d node_1/);
  expect(explain).toMatch(/^node_1, at 2026-11-21 03:15:00 UTC\n/);
  expect(JSON.parse(json!)).toMatchObject({ id: "node_1", source: "daemon" });
});

test("a rejected command exits with 1, a usage error with 2, and neither changes anything", async () => {
  const recorded: string[][] = [];
  const { url } = await startTestServer({
    execute: recordingCommands(recorded),
    operators: () => adminOperators(inlineSecret("sesame-open")),
  });
  const wrongFile = createTempFolder().write("token", "sesame-shut\n");
  const cases: readonly (readonly [args: readonly string[], code: number, message: RegExp])[] = [
    [["pause", "--url", url, "--token-file", wrongFile], 1, /rejected the token/],
    [["pause", "--url", url], 2, /needs an operator token: .*--token-file.*PROXYWARDEN_ADMIN_TOKEN/],
    [["approve", "--url", url], 2, /missing required argument 'action'/],
    [["hold", "a", "b"], 2, /too many arguments/],
    [["resume", "--reason", "x"], 2, /unknown option '--reason'/],
    [["resume", "--url", "nowhere"], 2, /--url.*http or https URL/],
    [["explain", "node_1", "--at", "soon"], 2, /--at.*2026-11-21T03:12:00Z, or how long ago/],
  ];
  const results = await Promise.all(cases.map(([args]) => runInProcess(...args)));
  for (const [index, { code, out, err }] of results.entries()) {
    const [args, expected, message] = cases[index]!;
    expect
      .soft({ args, code, out, err })
      .toEqual({ args, code: expected, out: "", err: expect.stringMatching(message) });
  }
  expect(recorded).toEqual([]);
});

test("the help of each command has an example", async () => {
  const names = ["pause", "resume", "approvals", "approve", "reject", "hold", "release", "reset-breaker"];
  const all = [...names, "accept-inventory", "explain"];
  const helps = await Promise.all(all.map((name) => runInProcess(name, "--help")));
  for (const [index, { code, out }] of helps.entries()) {
    expect.soft({ name: all[index], code }).toEqual({ name: all[index], code: 0 });
    expect.soft(out).toMatch(new RegExp(`Example:\n {2}\\$ npm start -- ${all[index]}\\b`));
  }
});
