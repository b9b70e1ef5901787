import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { runStateExport, runStateImport } from "../../../src/cli/state/state.ts";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import type { StateStore } from "../../../src/model/ports.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { actionOf, decisionOf, episodeOf, holdOf, timerOf } from "../../journal/arbitrary-changes.ts";
import { newSchema, openPostgres, postgresDeps, removeCluster, sharedCluster } from "../../journal/state-stores.ts";
import { captureOutput, runInProcess } from "../terminal.ts";

afterAll(removeCluster);

const config = (state: string) => `service: {base_url: "https://proxy.internal", api_key: sesame}\nstate: ${state}\n`;

/** A state that a configuration names. */
interface StateLocation {
  readonly config: string;
  open(): Promise<StateStore>;
}

function sqliteState(folder: TempFolder, name: string): StateLocation {
  return {
    config: folder.write(`${name}.yaml`, config(`{path: ${name}}`)),
    async open() {
      return orThrow(openSqliteStore(folder.pathOf(name)));
    },
  };
}

async function postgresState(folder: TempFolder, name: string): Promise<StateLocation> {
  const schema = newSchema();
  folder.write(`${name}.url`, `${(await sharedCluster()).url()}\n`);
  return {
    config: folder.write(`${name}.yaml`, config(`{postgres: {url_file: ${name}.url, schema: "${schema}"}}`)),
    open: () => openPostgres(postgresDeps(schema)),
  };
}

async function fill(state: StateLocation): Promise<void> {
  const store = await state.open();
  await store.journal.commit([
    { kind: "timer", row: timerOf("node_1", 60) },
    { kind: "episode", row: episodeOf(1) },
    { kind: "action", row: actionOf(2, "ep-1") },
    { kind: "episode", row: episodeOf(3, { node: 'n"2\n' }) },
    { kind: "decision", row: decisionOf(2) },
    { kind: "decision", row: decisionOf(1) },
    {
      kind: "command",
      row: { at: 3, command: "pause", operator: "alice", node: null, action: null, detail: "paused" },
    },
    { kind: "hold", row: holdOf("node_1") },
    { kind: "fact", key: "remediation.pause", value: "{}" },
    { kind: "fact", key: "collect.network_size", value: "[1]" },
  ]);
  await store.calls.add("2026-11-01", 7);
  await store.calls.add("2026-11-02", 1);
  await store.close();
}

async function contentsOf(state: StateLocation) {
  const store = await state.open();
  const { journal, calls } = store;
  const contents = {
    loaded: await journal.load(0),
    decisions: await journal.decisions({ limit: 9 }),
    commands: await journal.operatorCommands({ limit: 9 }),
    calls: [calls.since("2026-11-01"), calls.since("2026-11-02")],
  };
  await store.close();
  return contents;
}

const exported = ({ config }: StateLocation, file: string) =>
  captureOutput((context) => runStateExport({ config }, context, [file]));
const imported = ({ config }: StateLocation, file: string) =>
  captureOutput((context) => runStateImport({ config }, context, [file]));

describe.each([
  ["SQLite to PostgreSQL", "SQLite"],
  ["PostgreSQL to SQLite", "PostgreSQL"],
])("from %s", (_, from) => {
  const states = async () => {
    const folder = createTempFolder();
    const both = [sqliteState(folder, "sqlite"), await postgresState(folder, "postgres")] as const;
    const [source, target] = from === "SQLite" ? both : both.toReversed();
    return { folder, source: source!, target: target! };
  };

  test("a state is moved with all rows, and its export is the same again", async () => {
    const { folder, source, target } = await states();
    await fill(source);
    const file = folder.pathOf("state.jsonl");
    expect(await exported(source, file)).toEqual({ code: 0, out: "", err: "" });
    expect(await imported(target, file)).toEqual({ code: 0, out: "", err: "imported 12 rows\n" });
    expect(await contentsOf(target)).toEqual(await contentsOf(source));
    const { out } = await exported(target, "-");
    const rows = (text: string) =>
      text
        .trimEnd()
        .split("\n")
        .slice(1)
        .map((line) => JSON.parse(line) as object);
    expect(rows(out)).toEqual(rows(readFileSync(file, "utf8")));
    const again = await imported(target, file);
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining("the state is not empty") });
  });

  test("an export that is not complete, or has an invalid row, is refused and nothing is written", async () => {
    const { folder, source, target } = await states();
    await fill(source);
    const file = folder.pathOf("state.jsonl");
    await exported(source, file);
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const refusal = async (changed: readonly string[]) =>
      (await imported(target, folder.write("changed.jsonl", `${changed.join("\n")}\n`))).err;
    expect(await refusal(lines.slice(0, -1))).toContain("the export is not complete");
    expect(await refusal(lines.toSpliced(3, 1))).toContain("the export is not complete");
    expect(await refusal(lines.slice(1))).toContain("line 1 is not the header");
    for (const format of [1, 3])
      expect(await refusal([`{"proxywarden_state":${format}}`, ...lines.slice(1)])).toContain(
        `it has format ${format}, but this version of proxywarden reads only 2`,
      );
    expect(await refusal(lines.with(1, '{"kind":"more"}'))).toContain("line 2 is not a row of a state");
    const nameless = JSON.stringify({ kind: "episode", row: { ...episodeOf(1), id: "ep-" } });
    expect(await refusal(lines.with(-2, nameless))).toMatch(/is not the id of an episode.*nothing was written/);
    expect(await imported(target, file)).toMatchObject({ code: 0 });
  });
});

test.each(["SQLite", "PostgreSQL"])("an export from %s names the file that can't be written", async (kind) => {
  const folder = createTempFolder();
  const source = kind === "SQLite" ? sqliteState(folder, "sqlite") : await postgresState(folder, "postgres");
  await fill(source);
  const file = folder.pathOf("missing/state.jsonl");
  expect(await exported(source, file)).toEqual({
    code: 1,
    out: "",
    err: `proxywarden: the state can't be exported: ENOENT: no such file or directory, open '${file}.unfinished'\n`,
  });
});

test("an export to a file ends when the process is asked to stop, and leaves no file", async () => {
  const folder = createTempFolder();
  const source = sqliteState(folder, "sqlite");
  await fill(source);
  const stopped = captureOutput((context) =>
    runStateExport(source, { ...context, stop: AbortSignal.abort() }, [folder.pathOf("state.jsonl")]),
  );
  expect(await stopped).toEqual({ code: 1, out: "", err: "proxywarden: stopped\n" });
  expect(readdirSync(folder.path).filter((name) => name.startsWith("state.jsonl"))).toEqual([]);
});

test("a file that can't be read as UTF-8 is not imported", async () => {
  const folder = createTempFolder();
  const target = sqliteState(folder, "target");
  const utf16 = folder.pathOf("utf16.jsonl");
  writeFileSync(utf16, Uint8Array.of(0xff, 0xfe, 0x61, 0x00));
  const missing = folder.pathOf("missing.jsonl");
  for (const [file, reason] of [
    [utf16, "it is encoded as UTF-16; it must be UTF-8"],
    [missing, "there is no such file (ENOENT)"],
  ] as const) {
    const refused = { code: 1, out: "", err: `proxywarden: can't read ${file}: ${reason}\n` };
    expect(await imported(target, file)).toEqual(refused);
  }
});

describe("of the configuration, an export and an import need only the section `state`", () => {
  const withErrors = (rest: string) => `service: {api_key: "\${NO_SUCH_VARIABLE}"}\npolicies: [none/*.yaml]\n${rest}\n`;

  test("variables that are not set and errors in other sections don't matter", async () => {
    const folder = createTempFolder();
    const [source, target] = [sqliteState(folder, "source"), sqliteState(folder, "target")];
    await fill(source);
    const file = folder.pathOf("state.jsonl");
    const from = { ...source, config: folder.write("from.yaml", withErrors("state: {path: source}")) };
    const to = { ...target, config: folder.write("to.yaml", withErrors("state: {path: target}")) };
    expect(await exported(from, file)).toEqual({ code: 0, out: "", err: "" });
    expect(await imported(to, file)).toEqual({ code: 0, out: "", err: "imported 12 rows\n" });
  });

  test.each([
    ["state: {paht: source}", '3:9: state.paht: unknown key; did you mean "path"?'],
    ["stat: {path: source}", '3:1: stat: unknown key; did you mean "state"?'],
    [`state: {path: "\${NO_SUCH_FOLDER}"}`, "3:15: state.path: "],
    ["state: [", "not valid YAML"],
  ])("but %s is rejected", async (state, problem) => {
    const folder = createTempFolder();
    const file = folder.write("proxywarden.yaml", withErrors(state));
    const { code, out, err } = await captureOutput((context) => runStateExport({ config: file }, context, ["-"]));
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(problem);
    expect(err).not.toContain("NO_SUCH_VARIABLE");
  });
});

test("a state is not imported while a daemon leads on it", async () => {
  const folder = createTempFolder();
  const [source, target] = [sqliteState(folder, "sqlite"), await postgresState(folder, "postgres")];
  await fill(source);
  await exported(source, folder.pathOf("state.jsonl"));
  const store = await target.open();
  const refused = await imported(target, folder.pathOf("state.jsonl"));
  expect(refused).toMatchObject({
    code: 1,
    err: expect.stringContaining("a daemon is using the state; stop it first"),
  });
  await store.close();
  expect(await imported(target, folder.pathOf("state.jsonl"))).toMatchObject({ code: 0 });
});

test.each(["run", "plan --nodes 1", "explain node_1", "check", "state export -", "state import state.jsonl"])(
  "%s names the key of a file that can't be used",
  async (usage) => {
    const folder = createTempFolder();
    folder.write("two-lines.url", "one\ntwo\n");
    const file = folder.write(
      "proxywarden.yaml",
      `${config("{postgres: {url_file: two-lines.url}}")}log: {level: error}\n`,
    );
    const source = sqliteState(folder, "sqlite");
    await fill(source);
    await exported(source, folder.pathOf("state.jsonl"));
    const words = usage.replace("state.jsonl", folder.pathOf("state.jsonl")).split(" ");
    const { code, err } = await runInProcess(...words, "--config", file);
    expect(code).toBe(1);
    expect(err).toMatch(/: state\.postgres\.url_file: secret file .*two-lines\.url /);
  },
);
