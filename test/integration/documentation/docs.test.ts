import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EXIT_OK } from "../../../src/cli/context.ts";
import { createProgram } from "../../../src/cli/program.ts";
import { VERSION } from "../../../src/cli/context.ts";
import { captureOutput } from "../../cli/terminal.ts";
import { blockLanguages, commandsOf, docPages } from "./doc-pages.ts";
import { startDocsReader } from "./doc-reader.ts";

const ROOT = join(import.meta.dirname, "../../..");

/**
 * Commands that can't run within a test: they install, ask for a cluster, an engine or root, or are what runs the tests.
 * Beside each, what else holds it.
 */
const ELSEWHERE: readonly (readonly [command: string, held: string])[] = [
  ["npm ci", ".ci/run"],
  ["npm test", ".ci/run"],
  ["npm run check", ".ci/run"],
  [".ci/run", ".ci/run"],
  ["npm run format", ".ci/run"],
  ["npm run demo", "test/integration/cli/demo.test.ts"],
  ["npm run world", "test/world/main.ts"],
  ["npm run world -- day", "test/world/full-day.world.test.ts"],
  ["npm run world -- --seeds 300 --days 3", "test/world/main.ts"],
  ["npm run world -- --seed 17 --days 3", "test/world/main.ts"],
  ["npm run world -- --mutations", "test/world/seeds/mutations.ts"],
  ["npm pack", "test/integration/cli/package.test.ts"],
  [`npm install --global proxywarden-${VERSION}.tgz`, "test/integration/cli/package.test.ts"],
  [`docker build -t proxywarden:${VERSION} .`, "test/deploy/image.test.ts"],
  [
    `docker run --read-only -p 127.0.0.1:9713:9713 -v ./config:/etc/proxywarden:ro -v state:/var/lib/proxywarden -e PROXYWARDEN_API_KEY proxywarden:${VERSION}`,
    "test/deploy/image.test.ts",
  ],
  ["docker compose up --build", "test/deploy/compose.test.ts"],
  ["useradd --system --no-create-home --shell /usr/sbin/nologin proxywarden", "test/deploy/systemd.test.ts"],
  ["systemctl enable --now proxywarden", "test/deploy/systemd.test.ts"],
];

/** What takes a while, and nothing after it rests on: the rest need not wait for it. */
const APART = /^(?:promtool test|npm start -- (?:test|run)) /;

const elsewhere = new Map(ELSEWHERE);
const told = docPages().flatMap(commandsOf);

test("every command that the documentation tells to type does what it says: it ends with 0", async () => {
  const reader = await startDocsReader();
  // It is done before the backup that the documentation takes, and puts in the place of a daemon's state.
  await reader.daemon().runCli("hold", reader.healthyNode, "--reason", "its disk is swapped");
  const ends: Promise<string | null>[] = [];
  for (const { page, line, text } of told.filter(({ text }) => !elsewhere.has(text))) {
    const end = reader
      .runShell(text)
      .then(({ code, out, err }) =>
        code === 0 ? null : `${page}:${line}: ${text}\nended with ${code}:\n${err}${out}`,
      );
    ends.push(end);
    if (!APART.test(text)) await end;
  }
  expect((await Promise.all(ends)).filter((failure) => failure !== null)).toEqual([]);
  const { holds } = await reader.daemon().explain(reader.healthyNode);
  expect(holds).toMatchObject([{ reason: expect.stringContaining("its disk is swapped") }]);
  expect(existsSync(reader.localPath("var/lib/proxywarden/broken/proxywarden.db"))).toBe(true);
});

test("what can't run within a test is told somewhere, and held by something that there is", () => {
  const texts = new Set(told.map(({ text }) => text));
  expect(ELSEWHERE.filter(([command]) => !texts.has(command))).toEqual([]);
  expect(ELSEWHERE.filter(([, held]) => !existsSync(join(ROOT, held)))).toEqual([]);
});

test("commands are told in blocks that this test reads, and in no other kind", () => {
  const known = ["", "json", "sh", "yaml", "promql"];
  const unknown = docPages().flatMap((manual) =>
    blockLanguages(manual).filter((language) => !known.includes(language)),
  );
  expect(unknown).toEqual([]);
  expect(told.length).toBeGreaterThan(50);
});

test("a page's commands are read one by one: without comments, apart at &&, together over a backslash", () => {
  const text =
    "Some:\n\n```sh\ncd a && ls # all of it\n\n# alone\ncp one \\\n  two   # both\n```\n```yaml\na: b\n```\n";
  expect(commandsOf({ path: "page.md", text })).toEqual([
    { page: "page.md", line: 4, text: "cd a" },
    { page: "page.md", line: 4, text: "ls" },
    { page: "page.md", line: 7, text: "cp one two" },
  ]);
});

test("the text between the blocks names only commands and scripts that there are", async () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: object };
  const texts = docPages()
    .map(({ text }) => text)
    .join("\n");
  const named = (pattern: RegExp) => [...texts.matchAll(pattern)].map(([, name]) => name!);
  const commands = named(/`(?:proxywarden|npm start --) ([a-z][a-z-]*)/g);
  expect(commands).toEqual(expect.arrayContaining(["explain", "simulate", "policy"]));
  const output = await captureOutput(async (context) => {
    const known = createProgram(context, () => {}).commands.map((command) => command.name());
    expect(commands.filter((name) => !known.includes(name))).toEqual([]);
    return EXIT_OK;
  });
  expect(output.code).toBe(EXIT_OK);
  const runs = named(/\bnpm run ([\w:-]+)/g);
  expect(runs).toContain("docs");
  expect(runs.filter((name) => !(name in scripts))).toEqual([]);
  // The reader's npm knows this one alone.
  expect(scripts).toMatchObject({ start: "node src/main.ts" });
});
