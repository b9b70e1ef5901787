import { hashSync } from "bcryptjs";
import { describe, expect, onTestFinished, test } from "vitest";
import { inlineSecret } from "../../../../src/platform/secret-file.ts";
import { createUserAuth } from "../../../../src/web/http/auth/basic-auth.ts";
import { type Bcrypt, createBcrypt } from "../../../../src/web/http/auth/bcrypt.ts";
import { recordingOrders } from "../../api/remediation-view-fixture.ts";
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
const invalidLogin = { headers: basic("ann", "guessed-by-somebody") };

/** Bcrypt that knows without counting, and keeps what it was asked. */
function fakeBcrypt(): Bcrypt & { readonly hashes: string[] } {
  const hashes: string[] = [];
  return {
    hashes,
    matches(password, against) {
      hashes.push(against);
      return Promise.resolve(password === PASSWORD && against === hash);
    },
    close: () => Promise.resolve(),
  };
}

describe("basic auth", () => {
  test("is wanted for everything but health: 401 says how, and tells nothing else", async () => {
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
      expect(answer.text).toContain("a user and a password are wanted, by basic auth");
      expect(answer.headers["x-content-type-options"]).toBe("nosniff");
    }
    expect((await sendHttpRequest(web, "/-/reload", { method: "POST" })).status).toBe(401);
    expect((await sendHttpRequest(web, "/metrics", { method: "DELETE" })).status).toBe(401);
    expect(metrics["proxywarden_web_refusals_total credentials"]).toBe(paths.length + 2);
  });

  test("is not wanted for /-/healthy and /-/ready, whatever is sent along", async () => {
    const { web } = await startServerWithFiles(annWebFile);
    for (const options of [{}, invalidLogin, { method: "HEAD" }]) {
      expect((await sendHttpRequest(web, "/-/healthy", options)).status).toBe(200);
      expect((await sendHttpRequest(web, "/-/ready", options)).status).toBe(200);
    }
  });

  test.each(["$2a$", "$2b$", "$2y$"])("lets in by a right password of a %s hash, and by no other", async (version) => {
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
      expect(answer).toMatchObject({ status: 401, text: "wrong user or password\n" });
    }
    expect((await sendHttpRequest(web, "/metrics", validLogin)).status).toBe(200);
  });

  test("is in no log, neither the right password nor a wrong one", async () => {
    const { web } = await startServerWithFiles(annWebFile);
    await sendHttpRequest(web, "/metrics", validLogin);
    await sendHttpRequest(web, "/metrics", invalidLogin);
    expect(loggedMessages).toEqual(["Wrong user or password given."]);
    expect(loggedFields).toEqual([{ from: "127.0.0.1" }]);
  });

  test("is asked of whom the file names now: who is new, who is gone, whose password is another", async () => {
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

  test("is never turned off by a file that lost its users, half written as it may be", async () => {
    const { web, folder, clock } = await startServerWithFiles(annWebFile);
    for (const text of ["", "# users follow\n", "http_server_config: {}", "basic_auth_users: {}"]) {
      folder.write("web.yml", text);
      clock.nowMs += 1_000;
      expect((await sendHttpRequest(web, "/metrics")).status).toBe(401);
      expect((await sendHttpRequest(web, "/metrics", validLogin)).status).toBe(200);
    }
  });
});

describe("bcrypt", () => {
  test("is run for the first scrape and not for the second, nor twice for two at once", async () => {
    const bcrypt = fakeBcrypt();
    const { web } = await startServerWithFiles(annWebFile, { bcrypt });
    await Promise.all([
      sendHttpRequest(web, "/metrics", validLogin),
      sendHttpRequest(web, "/metrics", validLogin),
      sendHttpRequest(web, "/", validLogin),
    ]);
    for (let scrape = 0; scrape < 5; scrape++)
      expect((await sendHttpRequest(web, "/metrics", validLogin)).status).toBe(200);
    expect(bcrypt.hashes).toEqual([hash]);
  });

  test("is run for an unknown user as for a known one, at the cost of one of those", async () => {
    const bcrypt = fakeBcrypt();
    const { web } = await startServerWithFiles(webYml({ ann: hash, bob: hash.replace("$04$", "$06$") }), { bcrypt });
    for (const user of ["eve", "mallory", "trent", "eve"]) {
      expect((await sendHttpRequest(web, "/metrics", { headers: basic(user, PASSWORD) })).status).toBe(401);
    }
    expect(bcrypt.hashes).toHaveLength(4);
    for (const against of bcrypt.hashes) expect(against).toMatch(/^\$2[aby]\$0[46]\$[./A-Za-z0-9]{53}$/);
    expect(bcrypt.hashes[0]).toBe(bcrypt.hashes[3]);
    expect(bcrypt.hashes).not.toContain(hash);
  });

  test("that can't be run is a 503, is logged, and lets nobody in", async () => {
    const bcrypt = { ...fakeBcrypt(), matches: () => Promise.reject(new Error("the thread is gone")) };
    const { web } = await startServerWithFiles(annWebFile, { bcrypt });
    const answer = await sendHttpRequest(web, "/metrics", validLogin);
    expect(answer).toMatchObject({ status: 503, text: "the password could not be checked\n" });
    expect(answer.headers["retry-after"]).toBe("1");
    expect(loggedMessages).toEqual(["A password could not be checked."]);
  });

  test("runs aside: the loop turns many times while a password is checked", async () => {
    const bcrypt = createBcrypt();
    onTestFinished(() => bcrypt.close());
    await bcrypt.matches("warm", hash);
    let turns = 0;
    let isOver = false;
    const checked = bcrypt.matches(PASSWORD, hashSync(PASSWORD, 8)).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      turns++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await checked).toBe(true);
    expect(turns).toBeGreaterThan(50);
  });

  test("answers each of many who ask at once, and fails those who wait when it ends", async () => {
    const bcrypt = createBcrypt();
    const given = [PASSWORD, "x", PASSWORD, "y"];
    expect(await Promise.all(given.map((password) => bcrypt.matches(password, hash)))).toEqual([
      true,
      false,
      true,
      false,
    ]);
    const waiting = bcrypt.matches(PASSWORD, hashSync(PASSWORD, 10));
    await Promise.all([expect(waiting).rejects.toThrow("has ended"), bcrypt.close()]);
  });
});

describe("wrong passwords", () => {
  test("are looked at ten times a minute and client; then 429, but not for who was right before", async () => {
    const bcrypt = fakeBcrypt();
    const { web, clock, metrics } = await startServerWithFiles(webYml({ ann: hash, bob: hash }), { bcrypt });
    await sendHttpRequest(web, "/", validLogin);
    for (let time = 0; time < 10; time++) {
      expect((await sendHttpRequest(web, "/metrics", { headers: basic("ann", String(time)) })).status).toBe(401);
    }
    const throttled = await sendHttpRequest(web, "/metrics", invalidLogin);
    expect(throttled).toMatchObject({ status: 429, text: expect.stringContaining("too many wrong passwords") });
    expect(throttled.headers["retry-after"]).toBe("60");
    expect(bcrypt.hashes).toHaveLength(11);
    expect((await sendHttpRequest(web, "/metrics", validLogin)).status).toBe(200);
    const bob = { headers: basic("bob", PASSWORD) };
    expect((await sendHttpRequest(web, "/metrics", bob)).status).toBe(429);
    expect(metrics["proxywarden_web_refusals_total attempts"]).toBe(2);
    clock.nowMs += 60_000;
    expect((await sendHttpRequest(web, "/metrics", bob)).status).toBe(200);
  });

  const users = new Map([["ann", hash]]);
  const stillClock = { monotonic: () => 0 };

  test("of one client leave the others alone, and right ones count for nothing", async () => {
    const passwords = createUserAuth(fakeBcrypt(), stillClock);
    const judge = async (password: string, client: string) =>
      (await passwords.authenticate(basic("ann", password).authorization, users, client)).kind;
    for (let time = 0; time < 30; time++) expect(await judge(PASSWORD, "a")).toBe("granted");
    const many = await Promise.all(Array.from({ length: 12 }, (_, time) => judge(String(time), "a")));
    expect(many).toEqual([...Array(10).fill("wrong"), "throttled", "throttled"]);
    expect(await judge("x", "b")).toBe("wrong");
  });

  test("that wait to be checked are bounded, whoever sent them: the rest is told to come again", async () => {
    const never: Bcrypt = { matches: () => new Promise(() => {}), close: () => Promise.resolve() };
    const passwords = createUserAuth(never, stillClock);
    const judge = (password: string, client: string) =>
      passwords.authenticate(basic("ann", password).authorization, users, client);
    for (let client = 0; client < 32; client++) expect(judge(`${client}`, `${client}`)).toBeInstanceOf(Promise);
    expect(judge("one more", "another")).toEqual({ kind: "busy", retryAfterMs: 1_000 });
    // One that is under way already costs nothing more.
    expect(judge("7", "another")).toBeInstanceOf(Promise);
  });
});

describe("the admin token", () => {
  const TOKEN = "an-admin-token";
  const bearer = { headers: { authorization: `Bearer ${TOKEN}` } };

  /** A server with users and a token, and the orders that it was given. */
  async function guarded(token: string | null = TOKEN) {
    const recorded: string[][] = [];
    const secret = token === null ? null : inlineSecret(token);
    const deps = { commands: () => recordingOrders(recorded), operators: () => adminOperators(secret) };
    return { kept: recorded, ...(await startServerWithFiles(annWebFile, { deps, bcrypt: fakeBcrypt() })) };
  }

  test("gives orders without a user, and shows what they are about", async () => {
    const { kept: recorded, web } = await guarded();
    expect((await sendHttpRequest(web, "/api/v1/pause", { method: "POST", ...bearer })).status).toBe(200);
    expect((await sendHttpRequest(web, "/api/v1/actions", bearer)).status).toBe(200);
    expect(recorded).toHaveLength(1);
  });

  test("is not replaced by a password: a user may look, and not give orders", async () => {
    const { kept: recorded, web } = await guarded();
    const answer = await sendHttpRequest(web, "/api/v1/pause", { method: "POST", ...validLogin });
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toMatch(/^Bearer /);
    expect(recorded).toEqual([]);
  });

  test("that is wrong shows nothing, and is throttled as ever", async () => {
    const { web } = await guarded();
    const guess = { headers: { authorization: "Bearer guess" } };
    for (let time = 0; time < 10; time++) expect((await sendHttpRequest(web, "/metrics", guess)).status).toBe(401);
    expect((await sendHttpRequest(web, "/metrics", guess)).status).toBe(429);
    expect((await sendHttpRequest(web, "/metrics", bearer)).status).toBe(200);
  });

  test("that is not there leaves no trace: its routes are 401 for strangers and 404 for users", async () => {
    const { web } = await guarded(null);
    for (const headers of [{}, bearer.headers]) {
      const answer = await sendHttpRequest(web, "/api/v1/pause", { method: "POST", headers });
      expect(answer.status).toBe(401);
      expect(answer.headers["www-authenticate"]).toMatch(/^Basic /);
    }
    expect((await sendHttpRequest(web, "/api/v1/pause", { method: "POST", ...validLogin })).status).toBe(404);
  });
});
