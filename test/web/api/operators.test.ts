import { expect, test } from "vitest";
import { ok } from "../../../src/base/result.ts";
import { openIntegrations } from "../../../src/daemon/integrations.ts";
import { silentLog } from "../../../src/platform/log.ts";
import { inlineSecret } from "../../../src/platform/secret-file.ts";
import { configErrors, loadConfigText, withService } from "../../config/config-fixtures.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { sendHttpRequest, startServerWithFiles } from "../http/secured-server.ts";
import { stoppedClock } from "../http/test-server.ts";
import { idleRemediation, recordingCommands, SAMPLES_START_MS } from "./remediation-view-fixture.ts";

const PLAIN = { "web.yml": "http_server_config: { http2: false }" };
const operators = () => [
  { name: "alice", token: inlineSecret("token-a") },
  { name: "bob", token: inlineSecret("token-b") },
];

test("commands and reloads are recorded with the operator of the token", async () => {
  const names: string[] = [];
  const { web } = await startServerWithFiles(PLAIN, {
    deps: {
      operators,
      execute: recordingCommands([], null, names),
      async reload(operator) {
        names.push(operator!);
        return ok(undefined);
      },
    },
  });
  const post = async (path: string, token: string) =>
    (await sendHttpRequest(web, path, { method: "POST", headers: { authorization: `Bearer ${token}` } })).status;
  expect(await post("/api/v1/pause", "token-a")).toBe(200);
  expect(await post("/api/v1/nodes/node_1/hold", "token-b")).toBe(200);
  expect(await post("/-/reload", "token-b")).toBe(200);
  expect(await post("/api/v1/pause", "token-c")).toBe(401);
  expect(names).toEqual(["alice", "bob", "bob"]);
});

test("GET /api/v1/orders lists commands with operator and time", async () => {
  const asking: object[] = [];
  const row = { command: "hold", operator: "alice", node: "node_1", action: null, detail: "node_1 is held" } as const;
  const remediation = {
    ...idleRemediation,
    async operatorCommands(query: object) {
      asking.push(query);
      return [{ at: SAMPLES_START_MS, ...row }];
    },
  };
  const { web } = await startServerWithFiles(PLAIN, { deps: { remediation: () => remediation } });
  const answer = await sendHttpRequest(web, "/api/v1/orders?node=node_1&limit=5");
  const node = { name: null, country: null, region: null };
  expect(JSON.parse(answer.text)).toEqual({ data: [{ at: "2026-11-21T03:00:00.000Z", ...row, ...node }] });
  expect(asking).toEqual([{ node: "node_1", limit: 5 }]);
  expect((await sendHttpRequest(web, "/api/v1/orders?policy=x")).status).toBe(400);
});

test("web.operators needs distinct names; admin_token_file defines admin", () => {
  const web = (text: string) => configErrors(withService(`web: { ${text} }`));
  expect(web("operators: [{ name: alice, token_file: a }, { name: b.ob@x-1, token_file: b }]")).toEqual([]);
  expect(web("operators: [{ name: admin, token_file: a }]")).toEqual([]);
  expect(web("operators: [{ name: a, token_file: a }, { name: a, token_file: b }]")).toEqual([
    '2:56: web.operators[1].name: found "a"; must be unique, but an earlier entry has the same name',
  ]);
  expect(web("admin_token_file: t, operators: [{ name: admin, token_file: a }]")).toEqual([
    '2:49: web.operators[0].name: found "admin"; must be unique: admin is already the name of the operator of admin_token_file',
  ]);
  for (const name of ["''", "a b", "'a\\nb'", "é", "x".repeat(65)]) {
    expect(web(`operators: [{ name: ${name}, token_file: a }]`)).toEqual([
      expect.stringMatching(/web\.operators\[0\]\.name: .*must be a name of 1 to 64 letters, digits and \. _ @ -$/),
    ]);
  }
});

test("two operators must not share a token", () => {
  const folder = createTempFolder();
  const [one, same, other] = [folder.write("a", "secret\n"), folder.write("b", "secret"), folder.write("c", "x")];
  const prepared = (text: string) =>
    openIntegrations(loadConfigText(withService(`web: { ${text} }`)), {
      clock: { ...stoppedClock, now: () => 0 } as Parameters<typeof openIntegrations>[1]["clock"],
      agent: "test",
      log: silentLog,
    });
  const fine = prepared(`admin_token_file: ${one}, operators: [{ name: carol, token_file: ${other} }]`);
  expect(fine.ok && fine.value.operators.map(({ name }) => name)).toEqual(["admin", "carol"]);
  expect(prepared(`admin_token_file: ${one}, operators: [{ name: bob, token_file: ${same} }]`)).toEqual({
    ok: false,
    error: [{ key: "web.operators", message: "bob has the same token as admin" }],
  });
});
