import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLog, type LogConfig, type LogDestination } from "../../src/platform/log.ts";

/** A log and the lines it wrote. */
function recordedLog(options: Partial<LogConfig> = {}, isTTY = false) {
  const lines: string[] = [];
  const destination: LogDestination = { isTTY, write: (line) => lines.push(line) };
  return { lines, log: createLog({ level: "info", format: "json", ...options }, destination) };
}

describe("a JSON line", () => {
  test("has the level as a word, the time in ISO 8601, the fields and the message", () => {
    const { log, lines } = recordedLog();
    log.warn({ collector: "nodes", failures: 3 }, "Collection failed.");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/\}\n$/);
    const { time, ...rest } = JSON.parse(lines[0]!);
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(rest).toEqual({ level: "warn", collector: "nodes", failures: 3, msg: "Collection failed." });
  });

  test("stays one line for any value of a field", () => {
    const { log, lines } = recordedLog();
    log.info({ name: 'we"ird\na' }, "Node seen.");
    expect(lines[0]?.trimEnd()).not.toContain("\n");
    expect(JSON.parse(lines[0]!).name).toBe('we"ird\na');
  });

  test("contains an error with its message and its stack", () => {
    const { log, lines } = recordedLog();
    log.error({ err: new TypeError("no such thing") }, "Internal error.");
    expect(JSON.parse(lines[0]!).err).toMatchObject({ type: "TypeError", message: "no such thing" });
    expect(JSON.parse(lines[0]!).err.stack).toContain("log.test.ts");
  });

  test("contains an error that is plain text unchanged", () => {
    const { log, lines } = recordedLog();
    log.error({ err: "connection refused" }, "Request failed.");
    expect(JSON.parse(lines[0]!).err).toBe("connection refused");
  });
});

describe("the level", () => {
  test("suppresses lower levels, and may change", () => {
    const { log, lines } = recordedLog();
    const messages = () => lines.map((line) => JSON.parse(line).msg);
    log.debug({}, "first");
    log.setLevel("debug");
    log.debug({}, "second");
    log.setLevel("error");
    log.warn({}, "third");
    log.error({}, "fourth");
    expect(messages()).toEqual(["second", "fourth"]);
  });
});

describe("a secret that is logged by mistake", () => {
  test.each([
    ["authorization", { authorization: "k-12345" }],
    ["api_key", { service: { api_key: "k-12345" } }],
    ["proxy-authorization", { request: { headers: { "proxy-authorization": "k-12345" } } }],
    ["password", { request: { auth: { password: 'k-12345"' } } }],
    ["adminToken, however deep", { a: [{ b: { c: { d: { adminToken: "k-12345" } } } }] }],
    ["headers in a list", { headers: ["Authorization", "Bearer k-12345"] }],
    ["a token that begins like a word", { header: "bearer auth-k-12345" }],
    ["a header quoted in an error", { err: new Error("bad header: Authorization: Bearer k-12345") }],
    ["a URL with credentials", { url: "http://user:k-12345@proxy:3128/" }],
  ])("is redacted: %s", (_, fields) => {
    for (const format of ["json", "pretty"] as const) {
      const { log, lines } = recordedLog({ format });
      log.info(fields, "Request sent.");
      expect(lines.join("")).not.toContain("k-12345");
      expect(lines.join("")).toContain("[redacted]");
    }
  });

  test("does not redact similar text", () => {
    const { log, lines } = recordedLog();
    const problem = "basic_auth_users: turning basic auth off needs a reload";
    const fields = { url: "http://[::1]:9713/metrics", api_key_file: "/run/secrets/key", tokens: 3, problem };
    log.info(fields, "Listening.");
    expect(JSON.parse(lines[0]!)).toMatchObject(fields);
  });
});

describe("the pretty format", () => {
  test("is one line of text, without colors if not on a terminal", () => {
    const { log, lines } = recordedLog({ format: "pretty" });
    log.info({ nodes: 500 }, "Walk complete.");
    expect(lines.join("")).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: Walk complete\. \{"nodes":500\}\n$/);
  });

  test("has colors on a terminal", () => {
    const { log, lines } = recordedLog({ format: "pretty" }, true);
    log.info({}, "Walk complete.");
    expect(lines.join("")).toContain("\u001b[");
  });
});

/** Runs a script that has `log`, a log without a destination, in a process of its own. */
function runScript(script: string, stderr: "pipe" | number = "pipe") {
  const source = `
    import { readFileSync } from "node:fs";
    import { createLog } from ${JSON.stringify(join(import.meta.dirname, "../../src/platform/log.ts"))};
    const log = createLog({ level: "info", format: "json" });
    ${script}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["pipe", "pipe", stderr],
    timeout: 10_000,
  });
  child.stdin!.end();
  onTestFinished(() => void child.kill("SIGKILL"));
  return { exit: once(child, "exit"), stdout: child.stdout!, stderr: child.stderr! };
}

const logLines = (count: number) => `for (let line = 0; line < ${count}; line++) log.info({ line }, "Written.");`;
/** More lines than a pipe holds. */
const MANY = 10_000;
const LOG_MANY_AND_EXIT = `${logLines(MANY)} process.exit(3);`;

function expectLines(lines: string, count: number): void {
  const numbers = lines
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).line);
  expect(numbers).toEqual(Array.from({ length: count }, (_, line) => line));
}

describe("without a destination", () => {
  test("every line is on stderr, in order, once the process has exited", async () => {
    const { exit, stdout, stderr } = runScript(`${logLines(1_000)} process.exit(3);`);
    const [out, err] = await Promise.all([text(stdout), text(stderr)]);
    expectLines(err, 1_000);
    expect(out).toBe("");
    expect((await exit)[0]).toBe(3);
  });

  test("a closed stderr doesn't end the process", async () => {
    const { exit, stdout, stderr } = runScript(`
      readFileSync(0);
      for (let line = 0; line < 10; line++) log.error({ line }, "Lost.");
      setImmediate(() => setImmediate(() => process.stdout.write("alive")));`);
    stderr.destroy();
    expect(await text(stdout)).toBe("alive");
    expect((await exit)[0]).toBe(0);
  });

  test("the process exits as usual if stderr is closed or full, or nothing reads it", async () => {
    const closed = runScript(`readFileSync(0); ${LOG_MANY_AND_EXIT}`);
    closed.stderr.destroy();
    const fullDevice = openSync("/dev/full", "w");
    const full = runScript(LOG_MANY_AND_EXIT, fullDevice);
    closeSync(fullDevice);
    const unread = runScript(LOG_MANY_AND_EXIT);
    const codes = await Promise.all([closed, full, unread].map(async ({ exit }) => (await exit)[0]));
    expect(codes).toEqual([3, 3, 3]);
  });

  test("every line is on stderr, in order, once it is read again", async () => {
    const { stdout, stderr } = runScript(
      `${logLines(MANY)} process.stdout.write("logged"); setInterval(() => {}, 1_000);`,
    );
    await once(stdout, "data");
    let lines = "";
    for await (const part of stderr.setEncoding("utf8")) {
      lines += part;
      if (lines.includes(`"line":${MANY - 1},"msg":"Written."}\n`)) break;
    }
    expectLines(lines, MANY);
  });
});

test("a field may be frozen, circular, a bigint or undefined", () => {
  const { log, lines } = recordedLog();
  const circular: Record<string, unknown> = { at: Object.freeze({ api_key: "k-12345", big: 1n }) };
  circular.self = circular;
  log.info({ circular, nothing: undefined }, "Odd fields.");
  expect(JSON.parse(lines[0]!).msg).toBe("Odd fields.");
  expect(lines[0]).not.toContain("k-12345");
  expect(circular.at).toEqual({ api_key: "k-12345", big: 1n });
});
