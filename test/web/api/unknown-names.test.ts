import { describe, expect, test } from "vitest";
import type { RemediationView } from "../../../src/remediation/status/views.ts";
import { buildFleet, stepsOf } from "../fleet-fixture.ts";
import { fetchFrom, startTestServer } from "../http/test-server.ts";
import { heldDecision, idleRemediation, policyStatus } from "./remediation-view-fixture.ts";

describe("a response without rows warns of each name in its query that the daemon does not know", () => {
  const fleet = buildFleet([
    { id: "node_1", region: "us-east" },
    { id: "node_2", region: "eu-west" },
  ]);
  const remediation: RemediationView = {
    ...idleRemediation,
    policyNames: () => ["reboot-offline"],
    policies: () => stepsOf([policyStatus]),
  };

  async function read(path: string) {
    const web = await startTestServer({ fleet: () => fleet, remediation: () => remediation });
    const response = await fetchFrom(web, `/api/v1/${path}`);
    const { data, warnings } = JSON.parse(response.text);
    return { status: response.status, rows: data.length, warnings };
  }

  const noPolicy = 'no policy "reboot": the known policies are reboot-offline';
  const noRegion = 'no region "US-East": the known regions are eu-west, us-east';
  const noCountry = 'no country "FR": the known countries are DE';
  const noNode = 'no node with the id "node_3" in the fleet';

  test.each([
    ["nodes?region=US-East", [noRegion]],
    ["nodes?region=US-East&country=FR", [noRegion, noCountry]],
    ["decisions?policy=reboot&node=node_3", [noNode, noPolicy]],
    ["actions?policy=reboot", [noPolicy]],
    ["actions?state=awaiting&policy=reboot", [noPolicy]],
    ["holds?policy=reboot", [noPolicy]],
    ["policies?policy=reboot", [noPolicy]],
    ["orders?node=node_3", [noNode]],
  ])("%s", async (path, warnings) => {
    expect(await read(path)).toEqual({ status: 200, rows: 0, warnings });
  });

  test.each([
    ["decisions?policy=reboot-offline&node=node_2", 0],
    ["nodes?region=us-east&country=de&page=2", 0],
    ["nodes?node=node_3", 0],
    ["nodes?region=us-east", 1],
    ["policies?policy=reboot-offline", 1],
  ])("but %s knows its names", async (path, rows) => {
    expect(await read(path)).toEqual({ status: 200, rows, warnings: undefined });
  });

  test.each([
    ["decisions?policy=reboot", 0],
    ["policies?policy=reboot", 1],
  ])("the warning about %s needs no status of the policies", async (path, reads) => {
    let count = 0;
    const policies: RemediationView["policies"] = () => {
      count += 1;
      return stepsOf([policyStatus]);
    };
    const web = await startTestServer({ fleet: () => fleet, remediation: () => ({ ...remediation, policies }) });
    expect(JSON.parse((await fetchFrom(web, `/api/v1/${path}`)).text)).toMatchObject({ warnings: [noPolicy] });
    expect(count).toBe(reads);
  });

  test("at most twenty known names are listed", async () => {
    const many = buildFleet(Array.from({ length: 22 }, (_, index) => ({ id: `node_${index}`, region: `r${index}` })));
    const web = await startTestServer({ fleet: () => many });
    const { warnings } = JSON.parse((await fetchFrom(web, "/api/v1/nodes?region=nowhere")).text);
    expect(warnings).toEqual([expect.stringMatching(/: the known regions are r0, r1, r10, .*, r7 and 2 more$/)]);
  });

  test("no name is unknown before the first walk", async () => {
    const web = await startTestServer();
    const response = await fetchFrom(web, "/api/v1/decisions?node=node_1&policy=a");
    expect(JSON.parse(response.text)).toEqual({ data: [] });
  });

  test("neither a node nor its location is unknown during the first walk, which has not shown all nodes", async () => {
    const web = await startTestServer({ fleet: () => ({ ...fleet, settledAt: null }) });
    for (const path of ["decisions?node=node_3", "nodes?region=us-west&country=FR"]) {
      const response = await fetchFrom(web, `/api/v1/${path}`);
      expect(JSON.parse(response.text)).not.toHaveProperty("warnings");
    }
  });

  test("rows of a policy that was removed need no warning", async () => {
    const decisions: RemediationView["decisions"] = () => Promise.resolve([heldDecision]);
    const web = await startTestServer({ fleet: () => fleet, remediation: () => ({ ...remediation, decisions }) });
    const response = await fetchFrom(web, "/api/v1/decisions?policy=removed");
    expect(JSON.parse(response.text)).not.toHaveProperty("warnings");
  });
});
