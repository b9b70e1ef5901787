import { createServer } from "node:http";
import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { type OperatorCommandOptions, sendOperatorCommand } from "../../src/cli/operator-command-request.ts";
import { inlineSecret } from "../../src/platform/secret-file.ts";
import { operatorCommandTable } from "../../src/web/api/operator-command-routes.ts";
import { listenInTest } from "../harness/servers/listening-server.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { recordingCommands } from "../web/api/remediation-view-fixture.ts";
import { buildFleet } from "../web/fleet-fixture.ts";
import { adminOperators, startTestServer } from "../web/http/test-server.ts";
import { captureOutput } from "./terminal.ts";

const TOKEN = "correct-horse-battery";
const withToken = { PROXYWARDEN_ADMIN_TOKEN: TOKEN };

/** A daemon that records operator commands instead of executing them. */
async function commandRecordingDaemon(
  refusal: Parameters<typeof recordingCommands>[1] = null,
  token: string | null = TOKEN,
) {
  const recorded: string[][] = [];
  const secret = token === null ? null : inlineSecret(token);
  const web = await startTestServer({
    fleet: () => buildFleet([{ id: "node/ü 1?" }, { id: ".." }]),
    execute: recordingCommands(recorded, refusal),
    operators: () => adminOperators(secret),
  });
  return { recorded, url: web.url };
}

function runOperatorCommand(
  name: string,
  id: string | undefined,
  options: Partial<OperatorCommandOptions> & { readonly url: string },
  env: Readonly<Record<string, string>> = withToken,
) {
  const command = operatorCommandTable.find((route) => route.name === name);
  if (command === undefined) throw new Error(`there is no command ${name}`);
  return captureOutput((context) => sendOperatorCommand(command, id, { output: "text", ...options }, context), env);
}

/** A server that sends the same response to every request. */
async function respondingServer(status: number, body: string): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(status).end(body));
  return `http://127.0.0.1:${await listenInTest(server)}`;
}

describe("a command", () => {
  test.each([
    ["pause", undefined, "deploy", ["pause", "deploy"]],
    ["pause", undefined, undefined, ["pause", "no reason given"]],
    ["resume", undefined, undefined, ["resume"]],
    ["approve", "act-3", undefined, ["approve", "act-3"]],
    ["reject", "act-3", "the carrier is on it", ["reject", "act-3", "the carrier is on it"]],
    ["hold", "node/ü 1?", "disk swap", ["hold", "node/ü 1?", "disk swap"]],
    ["release", "..", undefined, ["release", ".."]],
    ["reset-breaker", undefined, undefined, ["reset-breaker"]],
    ["accept-inventory", undefined, undefined, ["accept-inventory"]],
  ])(
    "%s of %j with the reason %j reaches the daemon, which says what is so now",
    async (name, id, reason, recorded) => {
      const { recorded: commands, url } = await commandRecordingDaemon();
      const end = await runOperatorCommand(name, id, { url, ...(reason === undefined ? {} : { reason }) });
      expect(end).toEqual({ code: 0, out: `${name} is done\n`, err: "" });
      expect(commands).toEqual([recorded]);
    },
  );

  test.each([
    ["pause", undefined, ["pause", "no reason given", "30m"]],
    ["hold", "node_1", ["hold", "node_1", "no reason given", "30m"]],
  ])("%s with --for reaches the daemon with its duration", async (name, id, recorded) => {
    const { recorded: commands, url } = await commandRecordingDaemon();
    expect(await runOperatorCommand(name, id, { url, for: 30 * MINUTE_MS })).toMatchObject({ code: 0 });
    expect(commands).toEqual([recorded]);
  });

  test("prints JSON with --output json", async () => {
    const { url } = await commandRecordingDaemon();
    const { code, out } = await runOperatorCommand("resume", undefined, { url, output: "json" });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ message: "resume is done" });
  });
});

describe("the token", () => {
  test("is read from a file, which overrides the environment", async () => {
    const { url } = await commandRecordingDaemon();
    const tokenFile = createTempFolder().write("token", `${TOKEN}\n`);
    expect(await runOperatorCommand("resume", undefined, { url, tokenFile }, {})).toMatchObject({ code: 0 });
    expect(
      await runOperatorCommand("resume", undefined, { url, tokenFile }, { PROXYWARDEN_ADMIN_TOKEN: "wrong" }),
    ).toMatchObject({
      code: 0,
    });
  });

  test("that is missing is a usage error, which names the option and the variable", async () => {
    const { recorded, url } = await commandRecordingDaemon();
    for (const env of [{}, { PROXYWARDEN_ADMIN_TOKEN: "" }]) {
      expect(await runOperatorCommand("resume", undefined, { url }, env)).toEqual({
        code: 2,
        out: "",
        err: "proxywarden: resume needs an operator token: pass its file as --token-file, or set PROXYWARDEN_ADMIN_TOKEN\n",
      });
    }
    expect(recorded).toEqual([]);
  });

  test("that can't be read, or has several lines, is an error", async () => {
    const folder = createTempFolder();
    const url = "http://127.0.0.1:1";
    expect(await runOperatorCommand("resume", undefined, { url, tokenFile: folder.pathOf("none") })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^proxywarden: --token-file: secret file .*none can't be read: .*ENOENT.*\n$/),
    });
    expect(await runOperatorCommand("resume", undefined, { url }, { PROXYWARDEN_ADMIN_TOKEN: "a\nb" })).toMatchObject({
      code: 1,
      err: "proxywarden: PROXYWARDEN_ADMIN_TOKEN: must be a single line of ASCII characters\n",
    });
  });

  test("is never printed", async () => {
    const { url } = await commandRecordingDaemon();
    const ends = await Promise.all([
      runOperatorCommand("resume", undefined, { url }),
      runOperatorCommand("resume", undefined, { url }, { PROXYWARDEN_ADMIN_TOKEN: "guessed" }),
    ]);
    expect(JSON.stringify(ends)).not.toMatch(/guessed|horse/);
  });
});

describe("an error is one line that says what to do:", () => {
  test("no daemon is listening", async () => {
    const end = await runOperatorCommand("pause", undefined, { url: "http://127.0.0.1:1" });
    expect(end).toEqual({
      code: 1,
      out: "",
      err: "proxywarden: no daemon is reachable at http://127.0.0.1:1 (connect ECONNREFUSED 127.0.0.1:1): start it, or set --url\n",
    });
  });

  test("the token is wrong", async () => {
    const { recorded, url } = await commandRecordingDaemon();
    expect(await runOperatorCommand("pause", undefined, { url }, { PROXYWARDEN_ADMIN_TOKEN: "guessed" })).toEqual({
      code: 1,
      out: "",
      err: `proxywarden: ${url} rejected the token: it must belong to an operator in web.operators or web.admin_token_file\n`,
    });
    expect(recorded).toEqual([]);
  });

  test("too many tokens were wrong", async () => {
    const { url } = await commandRecordingDaemon();
    const wrong = () => runOperatorCommand("pause", undefined, { url }, { PROXYWARDEN_ADMIN_TOKEN: "guessed" });
    for (let time = 0; time < 10; time++) await wrong();
    expect((await wrong()).err).toBe(
      "proxywarden: too many wrong tokens; valid operator tokens are still accepted; try again in 60 s\n",
    );
    expect((await runOperatorCommand("pause", undefined, { url })).code).toBe(0);
  });

  test.each(["pause", "approve"])("the daemon has no token, so %s has no route", async (name) => {
    const { url } = await commandRecordingDaemon(null, null);
    expect(await runOperatorCommand(name, name === "approve" ? "act-3" : undefined, { url })).toEqual({
      code: 1,
      out: "",
      err: `proxywarden: ${url} is read-only: set web.operators or web.admin_token_file in its configuration, and reload\n`,
    });
  });

  test.each(["not_found", "conflict", "journal"] as const)("the daemon refuses: %s", async (kind) => {
    const { url } = await commandRecordingDaemon({ kind, message: "act-3 is not waiting\u001b[2J" });
    expect(await runOperatorCommand("approve", "act-3", { url })).toEqual({
      code: 1,
      out: "",
      err: "proxywarden: act-3 is not waiting\u{fffd}[2J\n",
    });
  });

  test.each([
    ["approve", "the id of the action"],
    ["hold", "the id or name of the node"],
  ] as const)("the argument of %s is empty", async (name, needed) => {
    const { url } = await commandRecordingDaemon();
    expect(await runOperatorCommand(name, "", { url })).toMatchObject({
      code: 2,
      err: `proxywarden: ${name} needs ${needed}, but the given one is empty\n`,
    });
  });

  test("the reason is too long", async () => {
    const { url } = await commandRecordingDaemon();
    expect(await runOperatorCommand("pause", undefined, { url, reason: "x".repeat(501) })).toMatchObject({
      code: 1,
      err: 'proxywarden: key "reason": must be one line of text of 1 to 500 characters; omit it if there is none\n',
    });
  });

  test.each([
    [200, "<html>"],
    [200, '{"status": "ok"}'],
    [404, "404 page not found"],
    [404, '{"error": {"code": "NOT_FOUND"}}'],
    [302, ""],
    [502, "<html>"],
  ])("another server answers %i %j", async (status, body) => {
    const url = await respondingServer(status, body);
    expect(await runOperatorCommand("resume", undefined, { url })).toEqual({
      code: 1,
      out: "",
      err: `proxywarden: ${url} answered ${status}, which is not a proxywarden response: check --url\n`,
    });
  });

  test("a server with TLS answers a plain HTTP request", async () => {
    const url = await respondingServer(400, "plain HTTP request sent to an HTTPS server: use https://\n");
    expect((await runOperatorCommand("resume", undefined, { url })).err).toBe(
      `proxywarden: ${url} answered 400, which is not a proxywarden response: check --url; a server with TLS needs https://\n`,
    );
  });

  test("too many requests, and the response does not say until when", async () => {
    const url = await respondingServer(429, '{"message": "slow down"}');
    expect((await runOperatorCommand("resume", undefined, { url })).err).toBe("proxywarden: slow down\n");
  });

  test("the connection breaks, and the command may have been executed", async () => {
    const server = createServer((request) => request.socket.destroy());
    const url = `http://127.0.0.1:${await listenInTest(server)}`;
    const { code, err } = await runOperatorCommand("pause", undefined, { url });
    expect(code).toBe(1);
    expect(err).toMatch(/^proxywarden: http:.*; the command may still have been executed: check the status\n$/);
  });
});
