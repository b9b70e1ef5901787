import { describe, expect, test } from "vitest";
import { inlineSecret } from "../../../src/platform/secret-file.ts";
import { operatorCommandTable } from "../../../src/web/api/operator-command-routes.ts";
import { adminOperators, fetchFrom, loggedFields, loggedMessages, startTestServer } from "../http/test-server.ts";
import { recordingCommands } from "./remediation-view-fixture.ts";

const TOKEN = "correct horse battery";
const bearer = { authorization: `Bearer ${TOKEN}` };

/** A server with the admin token, and the commands that it received. */
async function serverRecordingCommands(refusal: Parameters<typeof recordingCommands>[1] = null) {
  const recorded: string[][] = [];
  const secret = inlineSecret(TOKEN);
  const web = await startTestServer({
    execute: recordingCommands(recorded, refusal),
    operators: () => adminOperators(secret),
  });
  const post = (path: string, body?: string | Uint8Array<ArrayBuffer>) =>
    fetchFrom(web, path, { method: "POST", headers: bearer, ...(body === undefined ? {} : { body }) });
  return { recorded, post, web };
}

describe("a command", () => {
  test.each([
    ["/api/v1/pause", { reason: "deploy" }, ["pause", "deploy"]],
    ["/api/v1/pause", null, ["pause", "no reason given"]],
    ["/api/v1/pause", { for: "1h30m", reason: "deploy" }, ["pause", "deploy", "1h30m"]],
    ["/api/v1/nodes/node_1/hold", { for: "2h" }, ["hold", "node_1", "no reason given", "2h"]],
    ["/api/v1/resume", null, ["resume"]],
    ["/api/v1/actions/act-3/approve", null, ["approve", "act-3"]],
    ["/api/v1/actions/act-3/reject", { reason: "I am on it" }, ["reject", "act-3", "I am on it"]],
    ["/api/v1/actions/act-3/reject", {}, ["reject", "act-3", "no reason given"]],
    ["/api/v1/nodes/node_1/hold", { reason: "disk swap" }, ["hold", "node_1", "disk swap"]],
    ["/api/v1/nodes/node_we%2Fird%20%C3%BC/hold", null, ["hold", "node_we/ird ü", "no reason given"]],
    ["/api/v1/nodes/node_1/release", {}, ["release", "node_1"]],
    ["/api/v1/breaker/reset", null, ["reset-breaker"]],
    ["/api/v1/inventory/accept", null, ["accept-inventory"]],
  ])("%s with %j is executed once and returns the message", async (path, body, command) => {
    const { recorded, post } = await serverRecordingCommands();
    const answer = await post(path, body === null ? undefined : JSON.stringify(body));
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
      status: 200,
      body: { message: `${command[0]} is done` },
    });
    expect(recorded).toEqual([command]);
  });

  test.each(["", "text/plain", ";", "application/json; charset"])(
    "is executed whatever its content type, such as %j",
    async (contentType) => {
      const { recorded, web } = await serverRecordingCommands();
      const headers = { ...bearer, "content-type": contentType };
      const body = JSON.stringify({ reason: "deploy" });
      expect(await fetchFrom(web, "/api/v1/pause", { method: "POST", headers, body })).toMatchObject({ status: 200 });
      expect(recorded).toEqual([["pause", "deploy"]]);
    },
  );

  test("hold is answered 404 if it names a node by anything but an id, which would hold no node", async () => {
    const { recorded, post } = await serverRecordingCommands();
    const answer = await post("/api/v1/nodes/fra-0007/hold");
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
      status: 404,
      body: {
        error: "not_found",
        message:
          'no node with the id "fra-0007"; ids begin with node_ (to find the id: GET /api/v1/nodes?node=fra-0007)',
      },
    });
    expect(recorded).toEqual([]);
  });

  test.each([
    ["/api/v1/actions//approve", "the id of the action, as in /api/v1/actions/ID/approve"],
    ["/api/v1/actions/%20/reject", "the id of the action, as in /api/v1/actions/ID/reject"],
    ["/api/v1/nodes//hold", "the id of the node, as in /api/v1/nodes/ID/hold"],
    ["/api/v1/nodes//release", "the id of the node, as in /api/v1/nodes/ID/release"],
  ])("%s, whose id is empty, is answered 400 and not executed", async (path, needed) => {
    const { recorded, post } = await serverRecordingCommands();
    const answer = await post(path);
    const message = `the path needs ${needed}, but the id is empty`;
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
      status: 400,
      body: { error: "bad_request", message },
    });
    expect(recorded).toEqual([]);
  });

  test("that the leader has not answered yet gets 202 and says so", async () => {
    const message = "operator command 7 was forwarded, and the leader has not replied yet";
    const { post } = await serverRecordingCommands({ kind: "unanswered", message });
    const answer = await post("/api/v1/resume");
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({ status: 202, body: { message } });
  });

  test("is logged without the token", async () => {
    const { post } = await serverRecordingCommands();
    await post("/api/v1/nodes/node_1/hold", '{"reason": "disk swap"}');
    expect(loggedMessages).toEqual(["operator command executed"]);
    expect(loggedFields).toEqual([
      { command: "hold", operator: "admin", node: "node_1", reason: "disk swap", from: "127.0.0.1" },
    ]);
  });

  test.each([
    ["not_found", 404, "not_found"],
    ["conflict", 409, "conflict"],
    ["journal", 503, "unavailable"],
  ] as const)("that is rejected as %s is answered %i with the reason", async (kind, status, error) => {
    const { post } = await serverRecordingCommands({ kind, message: "act-9 does not wait for approval" });
    const answer = await post("/api/v1/actions/act-9/approve");
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toEqual({ error, message: "act-9 does not wait for approval" });
  });

  const reasonRule = 'key "reason": must be one line of text of 1 to 500 characters; omit it if there is none';
  const durationRule =
    'key "for": must be a duration such as 30m or 2h, greater than 0 and at most 1y; omit it if there is no end';
  const shapeRule = 'the body must be empty, or a JSON object such as {"reason": "maintenance"}';
  test.each([
    ["/api/v1/pause", '{"raeson": "x"}', 'key "raeson": the known keys are reason and for'],
    ["/api/v1/pause", '{"__proto__": {}}', 'key "__proto__": the known keys are reason and for'],
    ["/api/v1/actions/act-3/reject", '{"for": "1h"}', 'key "for": the only known key is reason'],
    ["/api/v1/resume", '{"for": "1h"}', 'key "for": this command takes no parameters'],
    ["/api/v1/pause", '{"for": 30}', durationRule],
    ["/api/v1/pause", '{"for": "0s"}', durationRule],
    ["/api/v1/pause", '{"for": "2y"}', durationRule],
    ["/api/v1/nodes/node_1/hold", '{"for": "soon"}', durationRule],
    ["/api/v1/resume", '{"reason": "x"}', 'key "reason": this command takes no parameters'],
    ["/api/v1/pause", '{"reason": 5}', reasonRule],
    ["/api/v1/pause", '{"reason": " "}', reasonRule],
    ["/api/v1/pause", '{"reason": "a\\nb"}', reasonRule],
    ["/api/v1/pause", JSON.stringify({ reason: "x".repeat(501) }), reasonRule],
    ["/api/v1/pause", "{broken", shapeRule],
    ["/api/v1/pause", '["reason"]', shapeRule],
    ["/api/v1/pause", "null", shapeRule],
    ["/api/v1/pause", "reason=x", shapeRule],
  ])("%s with the body %j is answered 400 and not executed", async (path, body, message) => {
    const { recorded, post } = await serverRecordingCommands();
    const answer = await post(path, body);
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
      status: 400,
      body: { error: "bad_request", message },
    });
    expect(recorded).toEqual([]);
  });

  test("is not executed if the body is not UTF-8 or too long", async () => {
    const { recorded, post } = await serverRecordingCommands();
    expect((await post("/api/v1/pause", Uint8Array.of(0x22, 0xff, 0x22))).status).toBe(400);
    expect((await post("/api/v1/pause", `{"reason": "${" ".repeat(8_192)}"}`)).status).toBe(413);
    expect(recorded).toEqual([]);
  });

  test("is not executed if its parameters are in the query, where they would be ignored", async () => {
    const { recorded, post } = await serverRecordingCommands();
    expect((await post("/api/v1/pause?for=30m", "")).status).toBe(400);
    expect(recorded).toEqual([]);
  });

  test("may have a reason of 500 escaped characters", async () => {
    const { recorded, post } = await serverRecordingCommands();
    expect((await post("/api/v1/pause", `{"reason": "${"\\u00fc".repeat(500)}"}`)).status).toBe(200);
    expect(recorded).toEqual([["pause", "ü".repeat(500)]]);
  });

  test("must be sent by POST", async () => {
    const { recorded, web } = await serverRecordingCommands();
    const answer = await fetchFrom(web, "/api/v1/pause", { headers: bearer });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST");
    expect(recorded).toEqual([]);
  });
});

describe("without operators", () => {
  test.each(operatorCommandTable.map(({ path }) => path.replace(":id", "x")))(
    "%s is no page, by any method",
    async (path) => {
      const recorded: string[][] = [];
      const web = await startTestServer({
        execute: recordingCommands(recorded),
        operators: () => adminOperators(null),
      });
      const nowhere = await fetchFrom(web, "/api/v1/nowhere", { method: "POST" });
      for (const method of ["POST", "GET", "PUT", "DELETE"]) {
        const answer = await fetchFrom(web, path, { method, headers: bearer });
        expect({ method, status: answer.status, text: answer.text, allow: answer.headers.get("allow") }).toEqual({
          method,
          status: 404,
          text: nowhere.text,
          allow: null,
        });
        expect(answer.headers.get("www-authenticate")).toBeNull();
      }
      expect(recorded).toEqual([]);
    },
  );

  test("the other routes exist", async () => {
    const web = await startTestServer();
    for (const path of ["/api/v1/status", "/api/v1/decisions", "/api/v1/actions", "/api/v1/policies"]) {
      expect((await fetchFrom(web, path)).status).toBe(200);
    }
  });
});
