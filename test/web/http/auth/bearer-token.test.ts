import { renameSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Clock, Secret } from "../../../../src/model/ports.ts";
import { fileSecret, fixedSecret } from "../../../../src/platform/secret-file.ts";
import { createGate } from "../../../../src/web/http/auth/bearer-token.ts";
import type { Web } from "../../../../src/web/http/server.ts";
import { newFolder } from "../../../integration/folder.ts";
import { admin, ask, listening, logged, loggedFields, stillClock } from "../test-server.ts";
import { keptOrders } from "../../api/remediation-view-fixture.ts";

const TOKEN = "correct-horse-battery";

/** A clock that is set by hand. */
function handClock() {
  const state = { nowMs: 0 };
  return { state, clock: { monotonic: () => state.nowMs } };
}

/** A server with a token, and the orders that it was given. */
async function guarded(adminToken: () => Secret | null, clock: Pick<Clock, "sleep" | "monotonic"> = stillClock) {
  const kept: string[][] = [];
  const web = await listening({ orders: () => keptOrders(kept), operators: () => admin(adminToken()) }, clock);
  return { kept, web };
}

async function resume(web: Web, authorization?: string) {
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
  const { status, text, headers: answered } = await ask(web, "/api/v1/resume", { method: "POST", headers });
  return { status, text, challenge: answered.get("www-authenticate"), retryAfter: answered.get("retry-after") };
}

describe("the admin token", () => {
  test("is wanted: without one, or by another scheme, an order is 401 and not carried out", async () => {
    const { kept, web } = await guarded(() => fixedSecret(TOKEN));
    for (const authorization of [undefined, "", "Bearer", "Bearer ", `Basic ${TOKEN}`, TOKEN, `Bearer${TOKEN}`]) {
      const answer = await resume(web, authorization);
      expect(answer).toMatchObject({ status: 401, challenge: 'Bearer realm="proxywarden"' });
      expect(JSON.parse(answer.text)).toEqual({
        error: "unauthorized",
        message: "this needs an operator's token, as in Authorization: Bearer TOKEN",
      });
    }
    expect(kept).toEqual([]);
  });

  test("that is wrong gets one answer, however near it comes", async () => {
    const { kept, web } = await guarded(() => fixedSecret(TOKEN));
    const wrong = ["x", TOKEN.slice(0, -1), `${TOKEN}x`, TOKEN.toUpperCase(), `${TOKEN} ${TOKEN}`, "x".repeat(8_000)];
    const answers = await Promise.all(wrong.map((token) => resume(web, `Bearer ${token}`)));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(answers[0]).toMatchObject({ status: 401, challenge: 'Bearer realm="proxywarden", error="invalid_token"' });
    expect(kept).toEqual([]);
  });

  test("that is right opens, whatever the case of the scheme", async () => {
    const { kept, web } = await guarded(() => fixedSecret(TOKEN));
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
    expect((await resume(web, `bearer  ${TOKEN}`)).status).toBe(200);
    expect(kept).toHaveLength(2);
  });

  test("is looked at before the body: who has none learns nothing by what he sends", async () => {
    const { web } = await guarded(() => fixedSecret(TOKEN));
    const answer = await ask(web, "/api/v1/pause", { method: "POST", body: "x".repeat(9_000) });
    expect(answer.status).toBe(401);
  });

  test("is in no log, neither the right one nor a wrong one", async () => {
    const { web } = await guarded(() => fixedSecret(TOKEN));
    await resume(web, `Bearer ${TOKEN}`);
    await resume(web, "Bearer guessed-by-somebody");
    expect(logged).toEqual(["Order carried out.", "wrong token given"]);
    expect(JSON.stringify(loggedFields)).not.toMatch(/guessed|horse/);
    expect(loggedFields[1]).toEqual({ path: "/api/v1/resume", from: "127.0.0.1" });
  });

  test("may come and go by a reload: the routes are there for as long as it is", async () => {
    let token: Secret | null = null;
    const { kept, web } = await guarded(() => token);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(404);
    token = fixedSecret(TOKEN);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
    token = null;
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(404);
    expect(kept).toHaveLength(1);
  });

  test("in a file that is replaced is in force at once, and the old one is wrong from then on", async () => {
    const folder = newFolder();
    const file = folder.write("token", `${TOKEN}\n`);
    // A clock that stands still: nothing but the wrong token makes it look at the file again.
    const secret = fileSecret(file, stillClock);
    if (!secret.ok) throw new Error(secret.error);
    const { web } = await guarded(() => secret.value);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
    renameSync(folder.write("next", "another-token\n"), file);
    expect((await resume(web, "Bearer another-token")).status).toBe(200);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(401);
  });

  test("keeps its old value where the file has become unreadable", async () => {
    const folder = newFolder();
    const secret = fileSecret(folder.write("token", TOKEN), stillClock);
    if (!secret.ok) throw new Error(secret.error);
    const { web } = await guarded(() => secret.value);
    renameSync(folder.at("token"), folder.at("gone"));
    expect((await resume(web, "Bearer wrong")).status).toBe(401);
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
  });

  test("loses blanks at its ends, as a header does", () => {
    const gate = createGate(stillClock);
    expect(gate.judge(`Bearer ${TOKEN}`, admin(fixedSecret(`${TOKEN} `)))).toEqual({
      kind: "granted",
      operator: "admin",
    });
  });
});

describe("wrong tokens", () => {
  const judgeMany = (gate: ReturnType<typeof createGate>, times: number) =>
    Array.from({ length: times }, () => gate.judge("Bearer wrong", admin(fixedSecret(TOKEN))).kind);

  test("are throttled from the eleventh within a minute on, and the right one is let in all the while", () => {
    const { state, clock } = handClock();
    const gate = createGate(clock);
    expect(judgeMany(gate, 12)).toEqual([...Array(10).fill("wrong"), "throttled", "throttled"]);
    expect(gate.judge(`Bearer ${TOKEN}`, admin(fixedSecret(TOKEN)))).toEqual({ kind: "granted", operator: "admin" });
    state.nowMs = 59_000;
    expect(gate.judge("Bearer wrong", admin(fixedSecret(TOKEN)))).toEqual({ kind: "throttled", retryAfterMs: 1_000 });
    state.nowMs = 60_000;
    expect(judgeMany(gate, 11)).toEqual([...Array(10).fill("wrong"), "throttled"]);
  });

  test("that are throttled don't reach for the file", () => {
    let reads = 0;
    const secret: Secret = {
      value: () => TOKEN,
      refresh: () => {
        reads++;
        return { ok: true, value: false };
      },
    };
    const gate = createGate(handClock().clock);
    for (let time = 0; time < 50; time++) gate.judge("Bearer wrong", admin(secret));
    expect(reads).toBe(10);
  });

  test("that are absent count for nothing: a page that is opened without one locks nobody out", () => {
    const gate = createGate(handClock().clock);
    for (let time = 0; time < 50; time++) gate.judge(undefined, admin(fixedSecret(TOKEN)));
    expect(judgeMany(gate, 1)).toEqual(["wrong"]);
  });

  test("are answered with 429 and when to come again, over all routes together; the right one with 200", async () => {
    const { kept, web } = await guarded(() => fixedSecret(TOKEN));
    const wrong = { method: "POST", headers: { authorization: "Bearer wrong" } };
    for (let time = 0; time < 10; time++) expect((await ask(web, "/api/v1/pause", wrong)).status).toBe(401);
    expect(await resume(web, "Bearer wrong")).toMatchObject({ status: 429, retryAfter: "60" });
    expect((await resume(web, `Bearer ${TOKEN}`)).status).toBe(200);
    expect(kept).toEqual([["resume"]]);
    expect(logged.filter((message) => message === "wrong token given")).toHaveLength(10);
  });
});
