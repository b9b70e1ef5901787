import { describe, expect, test } from "vitest";
import { idleRemediation } from "../../web/api/remediation-view-fixture.ts";
import { buildFleet } from "../../web/fleet-fixture.ts";
import { startTestServer } from "../../web/http/test-server.ts";
import { runInProcess } from "../terminal.ts";

describe("a filter by a name that the daemon does not know is reported if nothing matches", () => {
  async function run(...args: readonly string[]) {
    const fleet = buildFleet([
      { id: "node_1", region: "us-east" },
      { id: "node_2", region: "eu-west" },
    ]);
    const remediation = () => ({ ...idleRemediation, policyNames: () => ["reboot-offline"] });
    const { url } = await startTestServer({ fleet: () => fleet, remediation });
    return runInProcess(...args, "--url", url);
  }

  test.each([
    ["decisions", "no decisions\n"],
    ["actions", "no actions\n"],
  ])("%s names the policies, regions and countries", async (command, out) => {
    expect(await run(command, "--policy", "reboot")).toEqual({
      code: 0,
      out,
      err: 'proxywarden: no policy "reboot": the known policies are reboot-offline\n',
    });
    expect(await run(command, "--region", "US-East", "--country", "FR")).toEqual({
      code: 0,
      out,
      err: 'proxywarden: no region "US-East": the known regions are eu-west, us-east\nproxywarden: no country "FR": the known countries are DE\n',
    });
  });

  test.each([
    ["decisions", "no decisions\n"],
    ["orders", "no operator commands\n"],
  ])("%s names an id of a node that is not in the fleet", async (command, out) => {
    expect(await run(command, "--node", "node_3")).toEqual({
      code: 0,
      out,
      err: 'proxywarden: no node with the id "node_3" in the fleet\n',
    });
  });

  test("nodes names the regions and countries, and prints JSON on standard output only", async () => {
    expect(await run("nodes", "--region", "nowhere", "--output", "json")).toMatchObject({
      out: expect.stringContaining("[]"),
      err: 'proxywarden: no region "nowhere": the known regions are eu-west, us-east\n',
    });
    expect((await run("nodes", "--held", "--country", "FR")).err).toBe(
      'proxywarden: no country "FR": the known countries are DE\n',
    );
  });

  test("known names are not reported, and the case of a country is ignored", async () => {
    const filters = ["--policy", "reboot-offline", "--region", "eu-west", "--country", "de"];
    expect(await run("decisions", ...filters)).toEqual({ code: 0, out: "no decisions\n", err: "" });
  });

  test("at most twenty names are listed", async () => {
    const fleet = buildFleet(Array.from({ length: 22 }, (_, index) => ({ id: `node_${index}`, region: `r${index}` })));
    const server = await startTestServer({ fleet: () => fleet });
    const { err } = await runInProcess("nodes", "--region", "nowhere", "--url", server.url);
    expect(err).toMatch(/: the known regions are r0, r1, r10, .*, r7 and 2 more\n$/);
  });
});
