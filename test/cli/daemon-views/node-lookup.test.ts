import { describe, expect, test } from "vitest";
import { inlineSecret } from "../../../src/platform/secret-file.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { idleRemediation, recordingCommands, sampleApproval } from "../../web/api/remediation-view-fixture.ts";
import { buildFleet } from "../../web/fleet-fixture.ts";
import { adminOperators, completeDeps, startTestServer } from "../../web/http/test-server.ts";
import { runInProcess } from "../terminal.ts";

const fleet = buildFleet([{ id: "node_1" }, { id: "node_2" }]);

describe("a node is named by its id or its name", () => {
  test("explain, hold and release find the node with the name", async () => {
    const recorded: string[][] = [];
    const { url } = await startTestServer({
      fleet: () => fleet,
      node: (id) => (id === "node_2" ? { id, status: "online" } : null),
      execute: recordingCommands(recorded),
      operators: () => adminOperators(inlineSecret("sesame")),
    });
    const token = createTempFolder().write("token", "sesame");
    expect((await runInProcess("explain", "name of node_2", "--url", url)).out).toMatch(/^node_2, at/);
    for (const command of ["hold", "release"]) {
      await runInProcess(command, "name of node_2", "--url", url, "--token-file", token);
    }
    expect(recorded).toEqual([
      ["hold", "node_2", "no reason given"],
      ["release", "node_2"],
    ]);
    for (const args of [["explain"], ["hold", "--token-file", token], ["release", "--token-file", token]]) {
      const [command, ...options] = args;
      expect(await runInProcess(command!, "nowhere", "--url", url, ...options)).toEqual({
        code: 1,
        out: "",
        err: 'proxywarden: no node "nowhere" in the fleet: find it with npm start -- nodes --search\n',
      });
    }
    expect(recorded).toHaveLength(2);
  });

  test("a name that starts like an id is a name if a node has it", async () => {
    const recorded: string[][] = [];
    const { url } = await startTestServer({
      fleet: () => buildFleet([{ id: "node_1", name: "node_of_berlin" }]),
      execute: recordingCommands(recorded),
      operators: () => adminOperators(inlineSecret("sesame")),
    });
    const token = createTempFolder().write("token", "sesame");
    for (const node of ["node_of_berlin", "node_that_left"]) {
      expect(await runInProcess("hold", node, "--url", url, "--token-file", token)).toMatchObject({ code: 0 });
    }
    expect(recorded.map(([, id]) => id)).toEqual(["node_1", "node_that_left"]);
  });

  test("nodes says nothing if only the filters match none", async () => {
    const { url } = await startTestServer({ fleet: () => buildFleet([{ id: "node_1" }]) });
    expect(await runInProcess("nodes", "--search", "nowhere", "--url", url)).toEqual({
      code: 0,
      out: "no nodes\n",
      err: "",
    });
  });

  test.each([
    [{ nodes: null }, "the daemon knows no nodes yet: try again after its first poll"],
    [
      {
        nodes: null,
        collectors: { nodes: { failure: { reason: "unauthorized", message: "the service answered 401" } } },
      },
      "the daemon knows no nodes yet, because they can't be read now: unauthorized: the service answered 401",
    ],
    [{ nodes: { total: 0 } }, "the service lists no nodes"],
  ])("nodes says why there are none, with the status %j", async (status, reason) => {
    const { url } = await startTestServer({ status: () => ({ leader: null, ...status }) });
    expect(await runInProcess("nodes", "--url", url)).toEqual({
      code: 0,
      out: "no nodes\n",
      err: `proxywarden: ${reason}\n`,
    });
  });

  test("nodes --held says that a daemon that stands by knows no nodes", async () => {
    const leader = { is_this: false, name: "proxywarden-1", url: "http://proxywarden-1:9713" };
    const { url } = await startTestServer({ status: () => ({ leader }) });
    expect(await runInProcess("nodes", "--held", "--url", url)).toEqual({
      code: 0,
      out: "no nodes are held\n",
      err: "proxywarden: this daemon stands by and knows no nodes: ask the leader at http://proxywarden-1:9713\n",
    });
  });

  test("if the nodes can't be read, the error says so, and not that there are none", async () => {
    const { url } = await startTestServer({
      nodes({ limit }) {
        if (limit === "1") throw new Error("broken");
        return completeDeps().nodes({});
      },
    });
    expect(await runInProcess("explain", "fra-1", "--url", url)).toEqual({
      code: 1,
      out: "",
      err: "proxywarden: internal error; see the daemon's log\n",
    });
  });

  test.each([
    [
      { is_this: false, name: "proxywarden-1", url: "http://proxywarden-1:9713" },
      "this daemon stands by and knows no nodes: ask the leader at http://proxywarden-1:9713; a node can still be named by its id",
    ],
    [null, "the daemon knows no nodes yet: try again after its first poll; a node can still be named by its id"],
  ])("a daemon that knows no nodes, with the leader %j, holds and releases by id only", async (leader, message) => {
    const recorded: string[][] = [];
    const { url } = await startTestServer({
      status: () => ({ leader }),
      execute: recordingCommands(recorded),
      operators: () => adminOperators(inlineSecret("sesame")),
    });
    const token = createTempFolder().write("token", "sesame");
    for (const command of ["hold", "release"]) {
      const run = (node: string) => runInProcess(command, node, "--url", url, "--token-file", token);
      expect(await run("fra-1")).toEqual({ code: 1, out: "", err: `proxywarden: ${message}\n` });
      expect(await run("node_1")).toMatchObject({ code: 0 });
    }
    expect(recorded.map(([command, id]) => [command, id])).toEqual([
      ["hold", "node_1"],
      ["release", "node_1"],
    ]);
  });

  test("a name of several nodes is an error that lists their ids", async () => {
    const twins = buildFleet([
      { id: "node_1", name: "fra-1" },
      { id: "node_2\u001b[2J", name: "fra-1" },
    ]);
    const { url } = await startTestServer({ fleet: () => twins });
    expect(await runInProcess("explain", "fra-1", "--url", url)).toEqual({
      code: 1,
      out: "",
      err: "proxywarden: several nodes have the name fra-1: use one of the ids node_1, node_2\u{fffd}[2J\n",
    });
  });

  test("at most twenty ids are listed", async () => {
    const twins = buildFleet(Array.from({ length: 22 }, (_, index) => ({ id: `node_${index}`, name: "fra-1" })));
    const { url } = await startTestServer({ fleet: () => twins });
    expect((await runInProcess("explain", "fra-1", "--url", url)).err).toMatch(
      /: use one of the ids node_0, .* and 2 more\n$/,
    );
  });

  test("approvals shows the names of nodes", async () => {
    const { url } = await startTestServer({
      fleet: () => fleet,
      remediation: () => ({ ...idleRemediation, approvals: () => [sampleApproval] }),
    });
    expect((await runInProcess("approvals", "--url", url)).out).toMatch(
      /^act-3 {2}quarantine for 1d name of node_1 \(node_1, DE, eu-west\)\n/,
    );
  });
});

test.each(["sesame", "open@sesame", "open sesame"])("errors do not show the password %j in --url", async (password) => {
  for (const command of ["nodes", "healthcheck"]) {
    const { code, err } = await runInProcess(command, "--url", `http://alice:${password}@127.0.0.1:1`);
    expect(code).toBe(1);
    expect(err).toContain("http://***@127.0.0.1:1");
    expect(err).not.toContain("sesame");
  }
});

test("a usage error does not show the credentials in --url", async () => {
  const { code, err } = await runInProcess("nodes", "--url", "http://alice:sesame@127.0.0.1:99999");
  expect(code).toBe(2);
  expect(err).toContain("argument 'http://***@127.0.0.1:99999' is invalid. It must be an http or https URL");
});

test("every problem of --http-config-file is on a line of its own", async () => {
  const file = createTempFolder().write("http.yml", "tls_config: {ca_fil: ca.crt}\nbasic_auht: {}\n");
  const { code, err } = await runInProcess("nodes", "--http-config-file", file);
  expect(code).toBe(1);
  expect(err.match(/^proxywarden: \S+http\.yml:\d+:\d+: /gm)).toHaveLength(2);
});
