import { readdirSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { setImmediate as onNextTurn } from "node:timers";
import { expect, onTestFinished, test } from "vitest";
import { runCommandLine } from "../../../src/cli/program.ts";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { decisionOf } from "../../journal/arbitrary-changes.ts";
import { captureOutput } from "../terminal.ts";

/** Runs a command line that is asked to stop when `stop` aborts. */
const run = (words: readonly string[], stop: AbortSignal) =>
  captureOutput((context) => runCommandLine(words, { ...context, stop }));

test.each(["-", "state.jsonl"])(
  "an export to %s ends when the process is asked to stop while rows are read",
  async (to) => {
    const folder = createTempFolder();
    const config = folder.write("proxywarden.yaml", "state: {path: state}\n");
    const store = openSqliteStore(folder.pathOf("state"));
    if (!store.ok) throw new Error(store.error.message);
    const rows = Array.from({ length: 5_000 }, (_, index) => ({ kind: "decision", row: decisionOf(index) }) as const);
    await store.value.journal.commit(rows);
    await store.value.close();
    const stop = new AbortController();
    const file = to === "-" ? to : folder.pathOf(to);
    const exported = run(["state", "export", "--config", config, file], stop.signal);
    onNextTurn(() => stop.abort());
    const { code, out, err } = await exported;
    expect({ code, err }).toEqual({ code: 1, err: "proxywarden: stopped\n" });
    expect(out).not.toContain('"kind":"end"');
    expect(readdirSync(folder.path).sort()).toEqual(["proxywarden.yaml", "state"]);
  },
);

/** Starts a server that accepts connections and never answers. Returns its port. `connected` is called for each one. */
async function startSilentServer(connected: () => void): Promise<number> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => undefined));
    connected();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test.each(["check", "plan", "explain node_1", "state export -", "state export FILE", "state import EMPTY"])(
  "%s ends when the process is asked to stop while it waits for a database",
  async (usage) => {
    const stop = new AbortController();
    const port = await startSilentServer(() => stop.abort());
    const folder = createTempFolder();
    folder.write("database.url", `postgres://proxywarden:sesame@127.0.0.1:${port}/proxywarden\n`);
    const config = folder.write(
      "proxywarden.yaml",
      `service: {base_url: "https://proxy.internal", api_key: sesame}\nstate: {postgres: {url_file: database.url}}\n`,
    );
    const empty = folder.write("empty.jsonl", '{"proxywarden_state":2}\n{"kind":"end","rows":0}\n');
    const words = usage.replace("FILE", folder.pathOf("state.jsonl")).replace("EMPTY", empty).split(" ");
    const { code, out, err } = await run([...words, "--config", config], stop.signal);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe("proxywarden: stopped\n");
  },
);
