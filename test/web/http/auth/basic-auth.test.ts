import { hashSync } from "bcryptjs";
import { describe, expect, test } from "vitest";
import { createLog } from "../../../../src/platform/log.ts";
import { inlineSecret } from "../../../../src/platform/secret-file.ts";
import { createUserAuth } from "../../../../src/web/http/auth/basic-auth.ts";
import type { BcryptMatches } from "../../../../src/web/http/auth/bcrypt.ts";
import { recordingCommands } from "../../api/remediation-view-fixture.ts";
import { basic, sendHttpRequest, startServerWithFiles } from "../secured-server.ts";
import { adminOperators, loggedFields, loggedMessages } from "../test-server.ts";

const COST = 4;
const PASSWORD = "correct: horse – battery";
const hash = hashSync(PASSWORD, COST);
const webYml = (users: Readonly<Record<string, string>>) => ({
  "web.yml": JSON.stringify({ basic_auth_users: users }),
});
const annWebFile = webYml({ ann: hash });
const validLogin = { headers: basic("ann", PASSWORD) };
const invalidLogin = { headers: basic("ann", "wrong-guess") };

/** A comparison without computing, which records the hashes that it gets. */
function fakeBcrypt() {
  const hashes: string[] = [];
  const bcryptMatches: BcryptMatches = (password, against) => {
    hashes.push(against);
    return Promise.resolve(password === PASSWORD && against === hash);
  };
  return { hashes, bcryptMatches };
}

describe("basic auth", () => {
  test("is required for every route except health", async () => {
    const { web, metrics } = await startServerWithFiles(annWebFile);
    const paths = [
      "/",
      "/metrics",
      "/api/v1/status",
      "/api/v1/nodes/node_1",
      "/api/v1/nowhere",
      "/none",
      "/favicon.ico",
    ];
    for (const path of paths) {
      const answer = await sendHttpRequest(web, path);
      expect({ path, status: answer.status }).toEqual({ path, status: 401 });
      expect(answer.headers["www-authenticate"]).toBe('Basic realm="proxywarden", charset="UTF-8"');
      expect(answer.text).toContain("basic auth is required");
      expect(answer.headers["x-content-type-options"]).toBe("nosniff");
    }
    expect((await sendHttpRequest(web, "/-/reload", { method: "POST" })).status).toBe(401);
    expect((await sendHttpRequest(web, "/metrics", { method: "DELETE" })).status).toBe(401);
    expect(metrics["proxywarden_web_refusals_total credentials"]).toBe(paths.length + 2);
  });

  test("is not required for /-/healthy and /-/ready", async () => {
    const { web } = await startServerWithFiles(annWebFile);
    for (const options of [{}, invalidLogin, { method: "HEAD" }]) {
      expect((await sendHttpRequest(web, "/-/healthy", options)).status).toBe(200);
      expect((await sendHttpRequest(web, "/-/ready", options)).status).toBe(200);
    }
  });

  test.each(["$2a$", "$2b$", "$2y$"])("accepts only the password of a %s hash", async (version) => {
    const { web } = await startServerWithFiles(webYml({ ann: version + hash.slice(4) }));
    expect((await sendHttpRequest(web, "/metrics", validLogin)).status).toBe(200);
    const none = [
      "Basic",
      "Basic !",
      "Basic YW5u",
      "Bearer sesame",
      validLogin.headers.authorization.replace("Basic ", ""),
    ];
    for (const authorization of none) {
      expect((await sendHttpRequest(web, "/metrics", { headers: { authorization } })).status).toBe(401);
    }
    const others = [
      basic("ann", ""),
      basic("ann", `${PASSWORD} `),
      basic("Ann", PASSWORD),
      basic("", PASSWORD),
      basic("ann", hash),
    ];
    for (const headers of [invalidLogin.headers, ...others]) {
      const answer = await sendHttpRequest(web, "/metrics", { headers });
      expect(answer).toMatchObject({ status: 401, text: "wrong user, password or token\n" });
    }
    expect((await sendHttpRequest(web, "/metrics", validLogin)).status).toBe(200);
  });

  test("never logs a password, right or wrong", async () => {
    const { web } = await startServerWithFiles(annWebFile);
    await sendHttpRequest(web, "/metrics", validLogin);
    await sendHttpRequest(web, "/metrics", invalidLogin);
    expect(loggedMessages).toEqual(["authentication failed"]);
    expect(loggedFields).toEqual([{ from: "127.0.0.1" }]);
  });

  test("follows users that are added, removed or changed in the file", async () => {
    const { web, folder, clock } = await startServerWithFiles(webYml({ ann: hash, bob: hash }));
    const bob = { headers: basic("bob", PASSWORD) };
    for (const user of [validLogin, bob]) expect((await sendHttpRequest(web, "/", user)).status).toBe(200);
    folder.write("web.yml", webYml({ ann: hashSync("another", COST), eve: hash })["web.yml"]);
    clock.nowMs += 1_000;
    expect((await sendHttpRequest(web, "/", validLogin)).status).toBe(401);
    expect((await sendHttpRequest(web, "/", bob)).status).toBe(401);
    expect((await sendHttpRequest(web, "/", { headers: basic("ann", "another") })).status).toBe(200);
    expect((await sendHttpRequest(web, "/", { headers: basic("eve", PASSWORD) })).status).toBe(200);
  });

  test("stays on when the file loses its users: it may be half written", async () => {
    const { web, folder, clock } = await startServerWithFiles(annWebFile);
    for (const text of ["", "# users follow\n", "http_server_config: {}", "basic_auth_users: {}"]) {
      folder.write("web.yml", text);
      clock.nowMs += 1_000;
      expect((await sendHttpRequest(web, "/metrics")).status).toBe(401);
      expect((await sendHttpRequest(web, "/metrics", validLogin)).status).toBe(200);
    }
    const lines: string[] = [];
    createLog({ level: "info", format: "json" }, { write: (line) => lines.push(line) }).error(loggedFields.at(-1)!, "");
    expect(lines.join("")).toContain("/web.yml: basic_auth_users: turning authentication off needs a reload");
  });
});

describe("bcrypt", () => {
  test("runs once for several scrapes with the same password", async () => {
    const { hashes, bcryptMatches } = fakeBcrypt();
    const { web } = await startServerWithFiles(annWebFile, { bcryptMatches });
    await Promise.all([
      sendHttpRequest(web, "/metrics", validLogin),
      sendHttpRequest(web, "/metrics", validLogin),
      sendHttpRequest(web, "/", validLogin),
    ]);
    for (let scrape = 0; scrape < 5; scrape++)
      expect((await sendHttpRequest(web, "/metrics", validLogin)).status).toBe(200);
    expect(hashes).toEqual([hash]);
  });

  test("runs for unknown users too, at the cost of a known one", async () => {
    const { hashes, bcryptMatches } = fakeBcrypt();
    const users = webYml({ ann: hash, bob: hash.replace("$04$", "$06$") });
    const { web } = await startServerWithFiles(users, { bcryptMatches });
    for (const user of ["eve", "mallory", "trent", "eve"]) {
      expect((await sendHttpRequest(web, "/metrics", { headers: basic(user, PASSWORD) })).status).toBe(401);
    }
    expect(hashes).toHaveLength(4);
    for (const against of hashes) expect(against).toMatch(/^\$2[aby]\$0[46]\$[./A-Za-z0-9]{53}$/);
    expect(hashes[0]).toBe(hashes[3]);
    expect(hashes).not.toContain(hash);
  });

  test("answers 503 and logs the failure if it can't run", async () => {
    const bcryptMatches = () => Promise.reject(new Error("no thread"));
    const { web } = await startServerWithFiles(annWebFile, { bcryptMatches });
    const answer = await sendHttpRequest(web, "/metrics", validLogin);
    expect(answer).toMatchObject({ status: 503, text: "the password could not be checked\n" });
    expect(answer.headers["retry-after"]).toBe("1");
    expect(loggedMessages).toEqual(["password check failed"]);
    expect(loggedFields).toEqual([{ err: new Error("no thread") }]);
  });
});

describe("wrong passwords", () => {
  test("are answered 429 after ten in a minute, while remembered logins still work", async () => {
    const { hashes, bcryptMatches } = fakeBcrypt();
    const { web, clock, metrics } = await startServerWithFiles(webYml({ ann: hash, bob: hash }), { bcryptMatches });
    await sendHttpRequest(web, "/", validLogin);
    for (let time = 0; time < 10; time++) {
      expect((await sendHttpRequest(web, "/metrics", { headers: basic("ann", String(time)) })).status).toBe(401);
    }
    const throttled = await sendHttpRequest(web, "/metrics", invalidLogin);
    expect(throttled).toMatchObject({
      status: 429,
      text: "too many wrong passwords from this address, or too many wrong tokens; operators' tokens, and passwords that were accepted before, still work\n",
    });
    expect(throttled.headers["retry-after"]).toBe("60");
    expect(hashes).toHaveLength(11);
    expect((await sendHttpRequest(web, "/metrics", validLogin)).status).toBe(200);
    const bob = { headers: basic("bob", PASSWORD) };
    expect((await sendHttpRequest(web, "/metrics", bob)).status).toBe(429);
    expect(metrics["proxywarden_web_refusals_total attempts"]).toBe(2);
    clock.nowMs += 60_000;
    expect((await sendHttpRequest(web, "/metrics", bob)).status).toBe(200);
  });

  const users = new Map([["ann", hash]]);
  const stillClock = { monotonic: () => 0 };

  test("are counted for each client, without the right ones", async () => {
    const authenticateUser = createUserAuth(fakeBcrypt().bcryptMatches, stillClock);
    const authenticate = async (password: string, client: string) =>
      (await authenticateUser(basic("ann", password).authorization, users, client)).kind;
    for (let time = 0; time < 30; time++) expect(await authenticate(PASSWORD, "a")).toBe("granted");
    const many = await Promise.all(Array.from({ length: 12 }, (_, time) => authenticate(String(time), "a")));
    expect(many).toEqual([...Array(10).fill("wrong"), "throttled", "throttled"]);
    expect(await authenticate("x", "b")).toBe("wrong");
  });

  test("do not include passwords that could not be checked", async () => {
    let isFailing = true;
    const bcryptMatches = () => (isFailing ? Promise.reject(new Error("out of memory")) : Promise.resolve(true));
    const authenticateUser = createUserAuth(bcryptMatches, stillClock);
    const authenticate = () => authenticateUser(validLogin.headers.authorization, users, "a");
    for (let time = 0; time < 10; time++) await expect(authenticate()).rejects.toThrow("out of memory");
    isFailing = false;
    expect(await authenticate()).toEqual({ kind: "granted" });
  });

  test("wait in a bounded queue; further ones get a Retry-After", async () => {
    const comparison = Promise.withResolvers<boolean>();
    const authenticateUser = createUserAuth(() => comparison.promise, stillClock);
    const authenticate = (password: string, client: string) =>
      authenticateUser(basic("ann", password).authorization, users, client);
    const waiting = Array.from({ length: 32 }, (_, client) => authenticate(`${client}`, `${client}`));
    expect(await authenticate("one more", "another")).toEqual({ kind: "busy", retryAfterMs: 1_000 });
    // The same login joins the pending check.
    const joined = authenticate("7", "another");
    comparison.resolve(false);
    expect(await Promise.all([...waiting, joined])).toEqual(Array(33).fill({ kind: "wrong" }));
  });
});

describe("the admin token", () => {
  const TOKEN = "an-admin-token";
  const bearer = { headers: { authorization: `Bearer ${TOKEN}` } };

  /** Starts a server with users and a token, and records the commands that it receives. */
  async function guarded(token: string | null = TOKEN) {
    const recorded: string[][] = [];
    const secret = token === null ? null : inlineSecret(token);
    const deps = { execute: recordingCommands(recorded), operators: () => adminOperators(secret) };
    return { recorded, ...(await startServerWithFiles(annWebFile, { deps, ...fakeBcrypt() })) };
  }

  test("is enough for commands and for reading", async () => {
    const { recorded, web } = await guarded();
    expect((await sendHttpRequest(web, "/api/v1/pause", { method: "POST", ...bearer })).status).toBe(200);
    expect((await sendHttpRequest(web, "/api/v1/actions", bearer)).status).toBe(200);
    expect(recorded).toHaveLength(1);
  });

  test("can't be replaced by a password", async () => {
    const { recorded, web } = await guarded();
    const answer = await sendHttpRequest(web, "/api/v1/pause", { method: "POST", ...validLogin });
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toMatch(/^Bearer /);
    expect(recorded).toEqual([]);
  });

  test("that is wrong is refused and throttled", async () => {
    const { web } = await guarded();
    const guess = { headers: { authorization: "Bearer guess" } };
    for (let time = 0; time < 10; time++) expect((await sendHttpRequest(web, "/metrics", guess)).status).toBe(401);
    expect((await sendHttpRequest(web, "/metrics", guess)).status).toBe(429);
    expect((await sendHttpRequest(web, "/metrics", bearer)).status).toBe(200);
    expect(new Set(loggedMessages)).toEqual(new Set(["authentication failed"]));
  });

  test("that is not configured: the command routes answer 404 to users", async () => {
    const { web } = await guarded(null);
    for (const headers of [{}, bearer.headers]) {
      const answer = await sendHttpRequest(web, "/api/v1/pause", { method: "POST", headers });
      expect(answer.status).toBe(401);
      expect(answer.headers["www-authenticate"]).toMatch(/^Basic /);
    }
    expect((await sendHttpRequest(web, "/api/v1/pause", { method: "POST", ...validLogin })).status).toBe(404);
  });
});
