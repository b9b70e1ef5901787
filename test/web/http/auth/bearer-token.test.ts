import { renameSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Clock, Secret } from "../../../../src/model/ports.ts";
import { fileSecret, inlineSecret } from "../../../../src/platform/secret-file.ts";
import { createOperatorAuth } from "../../../../src/web/http/auth/bearer-token.ts";
import type { WebServer } from "../../../../src/web/http/server.ts";
import { orThrow } from "../../../harness/or-throw.ts";
import { createTempFolder } from "../../../harness/temp-folder.ts";
import { recordingCommands } from "../../api/remediation-view-fixture.ts";
import {
  adminOperators,
  fetchFrom,
  loggedFields,
  loggedMessages,
  startTestServer,
  stoppedClock,
} from "../test-server.ts";

const TOKEN = "correct-horse-battery";

/** A clock that is set by hand. */
function manualClock() {
  const state = { nowMs: 0 };
  return { state, clock: { monotonic: () => state.nowMs } };
}

/** A server with a token, and the commands that it received. */
async function serverWithToken(
  adminToken: () => Secret | null,
  clock: Pick<Clock, "sleep" | "monotonic"> = stoppedClock,
) {
  const recorded: string[][] = [];
  const web = await startTestServer(
    { execute: recordingCommands(recorded), operators: () => adminOperators(adminToken()) },
    clock,
  );
  return { recorded, web };
}

async function resume(web: WebServer, authorization?: string) {
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
  const { status, text, headers: answered } = await fetchFrom(web, "/api/v1/resume", { method: "POST", headers });
  return { status, text, challenge: answered.get("www-authenticate"), retryAfter: answered.get("retry-after") };
}

describe("an operator token", () => {
  test("is required: a command without one is answered 401 and not executed", async () => {
    const { recorded, web } = await serverWithToken(() => inlineSecret(TOKEN));
    for (const authorization of [undefined, "", "Bearer", "Bearer ", `Basic ${TOKEN}`, TOKEN, `Bearer${TOKEN}`]) {
      const answer = await resume(web, authorization);
      expect(answer).toMatchObject({ status: 401, challenge: 'Bearer realm="proxywarden"' });
      expect(JSON.parse(answer.text)).toEqual({
        error: "unauthorized",
        message: "an operator token is required: Authorization: Bearer TOKEN",
      });
    }
    expect(recorded).toEqual([]);
  });

  test("that is wrong gets the same response, however similar it is", async () => {
    const { recorded, web } = await serverWithToken(() => inlineSecret(TOKEN));
    const wrong = ["x", TOKEN.slice(0, -1), `${TOKEN}x`, TOKEN.toUpperCase(), `${TOKEN} ${TOKEN}`, "x".repeat(8_000)];
    const answers = await Promise.all(wrong.map((token) => resume(web, `Bearer ${token}`)));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(answers[0]).toMatchObject({ status: 401, challenge: 'Bearer realm="proxywarden", error="invalid_token"' });
    expect(recorded).toEqual([]);
  });

  test("is accepted regardless of the case of the scheme", async () => {
    const { recorded, web } = await serverWithToken(() => inlineSecret(TOKEN));
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
    expect((await resume(web, `bearer  ${TOKEN}`)).status).toBe(200);
    expect(recorded).toHaveLength(2);
  });

  test("is checked before the body is read", async () => {
    const { web } = await serverWithToken(() => inlineSecret(TOKEN));
    const answer = await fetchFrom(web, "/api/v1/pause", { method: "POST", body: "x".repeat(9_000) });
    expect(answer.status).toBe(401);
  });

  test("is never logged, right or wrong", async () => {
    const { web } = await serverWithToken(() => inlineSecret(TOKEN));
    await resume(web, `Bearer ${TOKEN}`);
    await resume(web, "Bearer wrong-guess");
    expect(loggedMessages).toEqual(["operator command executed", "wrong token"]);
    expect(JSON.stringify(loggedFields)).not.toMatch(/guessed|horse/);
    expect(loggedFields[1]).toEqual({ path: "/api/v1/resume", from: "127.0.0.1" });
  });

  test("may be added and removed by a reload; the routes exist only with it", async () => {
    let token: Secret | null = null;
    const { recorded, web } = await serverWithToken(() => token);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(404);
    token = inlineSecret(TOKEN);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
    token = null;
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(404);
    expect(recorded).toHaveLength(1);
  });

  test("in a replaced file is valid immediately, and the old one invalid", async () => {
    const folder = createTempFolder();
    const file = folder.write("token", `${TOKEN}\n`);
    // With a stopped clock only the wrong token makes the secret read its file again.
    const secret = orThrow(fileSecret(file, stoppedClock));
    const { web } = await serverWithToken(() => secret);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
    renameSync(folder.write("next", "another-token\n"), file);
    expect((await resume(web, "Bearer another-token")).status).toBe(200);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(401);
  });

  test("keeps its value if the file can no longer be read", async () => {
    const folder = createTempFolder();
    const secret = orThrow(fileSecret(folder.write("token", TOKEN), stoppedClock));
    const { web } = await serverWithToken(() => secret);
    renameSync(folder.pathOf("token"), folder.pathOf("gone"));
    expect((await resume(web, "Bearer wrong")).status).toBe(401);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
  });

  test("is compared without blanks at its ends", () => {
    const authenticateOperator = createOperatorAuth(stoppedClock);
    expect(authenticateOperator(`Bearer ${TOKEN}`, adminOperators(inlineSecret(`${TOKEN} `)))).toEqual({
      kind: "granted",
      operator: "admin",
    });
  });
});

describe("wrong tokens", () => {
  const authenticateMany = (authenticateOperator: ReturnType<typeof createOperatorAuth>, times: number) =>
    Array.from({ length: times }, () => authenticateOperator("Bearer wrong", adminOperators(inlineSecret(TOKEN))).kind);

  test("are throttled after ten in a minute, while the right one is accepted", () => {
    const { state, clock } = manualClock();
    const authenticateOperator = createOperatorAuth(clock);
    expect(authenticateMany(authenticateOperator, 12)).toEqual([...Array(10).fill("wrong"), "throttled", "throttled"]);
    expect(authenticateOperator(`Bearer ${TOKEN}`, adminOperators(inlineSecret(TOKEN)))).toEqual({
      kind: "granted",
      operator: "admin",
    });
    state.nowMs = 59_000;
    expect(authenticateOperator("Bearer wrong", adminOperators(inlineSecret(TOKEN)))).toEqual({
      kind: "throttled",
      retryAfterMs: 1_000,
    });
    state.nowMs = 60_000;
    expect(authenticateMany(authenticateOperator, 11)).toEqual([...Array(10).fill("wrong"), "throttled"]);
  });

  test("don't read the file again while throttled", () => {
    let reads = 0;
    const secret: Secret = {
      value: () => TOKEN,
      refresh: () => {
        reads++;
        return { ok: true, value: false };
      },
    };
    const authenticateOperator = createOperatorAuth(manualClock().clock);
    for (let time = 0; time < 50; time++) authenticateOperator("Bearer wrong", adminOperators(secret));
    expect(reads).toBe(10);
  });

  test("that are absent are not counted", () => {
    const authenticateOperator = createOperatorAuth(manualClock().clock);
    for (let time = 0; time < 50; time++) authenticateOperator(undefined, adminOperators(inlineSecret(TOKEN)));
    expect(authenticateMany(authenticateOperator, 1)).toEqual(["wrong"]);
  });

  test("are answered 429 with Retry-After, counted over all routes", async () => {
    const { recorded, web } = await serverWithToken(() => inlineSecret(TOKEN));
    const wrong = { method: "POST", headers: { authorization: "Bearer wrong" } };
    for (let time = 0; time < 10; time++) expect((await fetchFrom(web, "/api/v1/pause", wrong)).status).toBe(401);
    expect(await resume(web, "Bearer wrong")).toMatchObject({ status: 429, retryAfter: "60" });
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
    expect(recorded).toEqual([["resume"]]);
    expect(loggedMessages.filter((message) => message === "wrong token")).toHaveLength(10);
  });
});
