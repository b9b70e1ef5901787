import { CommanderError } from "commander";
import { expect, test } from "vitest";
import { EXIT_OK } from "../../../src/cli/context.ts";
import { createProgram } from "../../../src/cli/program.ts";
import { captureOutput, runInProcess } from "../terminal.ts";

test.each<readonly [usage: string, message: RegExp]>([
  ["check --confg x.yaml", /unknown option '--confg'/],
  ["demo --nodes many", /--nodes.*'many' is invalid.*whole number from 0 to 200000/],
  ["demo --speed 0", /--speed.*number from 0\.1 to 1000/],
  ["demo --for soon", /--for.*A duration is a number with a unit/],
  ["simulate --port 70000", /--port.*whole number from 0 to 65535/],
  ["simulate --host=", /--host.*'' is invalid.*must be an address or host name, such as 127\.0\.0\.1/],
  ["check --output xml", /--output.*text, json/],
  ["test policies.yaml", /unknown command 'test'; did you mean policy test\?/],
  ["stauts", /unknown command 'stauts'; did you mean status\?/],
  ["run --config", /--config.*argument missing/],
  ["pause --for 0s", /--for.*'0s' is invalid.*must be a duration such as 30m or 2h, greater than 0 and at most 1y/],
  ["pause --for soon", /--for.*A duration is a number with a unit/],
  ["hold node_1 --for 366d", /--for.*'366d' is invalid.*at most 1y/],
  ["pause --reason=", /--reason.*'' is invalid.*one line of text of 1 to 500 characters/],
  [`reject act-1 --reason ${"x".repeat(501)}`, /--reason.*one line of text of 1 to 500 characters/],
  ["nodes --search=", /--search.*'' is invalid.*must be 1 to 256 characters/],
  ["nodes --region=", /--region.*'' is invalid.*must be 1 to 256 characters/],
  ["nodes --country=", /--country.*'' is invalid.*must be 1 to 256 characters/],
  ["decisions --policy=", /--policy.*'' is invalid.*must be 1 to 256 characters/],
  [`orders --node ${"x".repeat(257)}`, /--node.*must be 1 to 256 characters/],
])("%s is rejected with the expected value", async (usage, message) => {
  const { out, err } = await captureOutput(async (context) => {
    const program = createProgram(context);
    await expect(program.parseAsync(usage.split(" "), { from: "user" })).rejects.toThrow(CommanderError);
    return EXIT_OK;
  });
  expect(out).toBe("");
  expect(err).toMatch(message);
});

test("policy backtest rejects --http-config-file without --prometheus, to which it belongs", async () => {
  expect(await runInProcess("policy", "backtest", "--config", "x.yaml", "--http-config-file", "y.yaml")).toEqual({
    code: 2,
    out: "",
    err: "proxywarden: --http-config-file needs --prometheus; the credentials for prometheus.url are in the configuration\n",
  });
});
