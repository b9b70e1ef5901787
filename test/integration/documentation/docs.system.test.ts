import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EXIT_OK, VERSION } from "../../../src/cli/context.ts";
import { createProgram } from "../../../src/cli/program.ts";
import { captureOutput } from "../../cli/terminal.ts";
import { blockLanguages, commandsOf, docPages } from "./doc-pages.ts";
import { startDocsReader } from "./doc-reader.ts";

const ROOT = join(import.meta.dirname, "../../..");

/**
 * Commands that can't run in a test, because they install something, need a cluster, a container engine or root, or run
 * the tests. Beside each, what else tests it.
 */
const TESTED_ELSEWHERE: readonly (readonly [command: string, testedBy: string])[] = [
  ["npm ci", ".ci/run"],
  ["npm test", ".ci/run"],
  ["npm run test:system", ".ci/run"],
  ["npm run check", ".ci/run"],
  [".ci/run", ".ci/run"],
  ["npm run format", ".ci/run"],
  ["npm run demo", "test/integration/cli/demo.system.test.ts"],
  ["npm run world", "test/world/main.ts"],
  ["npm run world -- full-day", "test/world/full-day.world.test.ts"],
  ["npm run world -- high-availability", "test/world/high-availability/high-availability.world.test.ts"],
  ["npm run world -- --seeds 300 --days 3", "test/world/main.ts"],
  ["npm run world -- --seed 17 --days 3", "test/world/main.ts"],
  ["npm run world -- --mutations", "test/world/seeds/mutations.ts"],
  ["npm run world -- --mutation canary", "test/world/seeds/mutations.ts"],
  [
    "npm start -- policy backtest --config config/my.yaml --prometheus http://127.0.0.1:9090 --since 30d",
    "test/integration/backtest/backtest.system.test.ts",
  ],
  [
    "npm start -- policy backtest --config config/my.yaml --prometheus http://127.0.0.1:9090 --since 30d --policies offline.yaml",
    "test/integration/backtest/backtest.system.test.ts",
  ],
  ["npm start -- policy test config/policies/tests/*.yaml", "test/cli/policy/shipped-policy-tests.system.test.ts"],
  ["promtool test rules config/prometheus/tests/*.yml", "test/monitoring/alerts/rules.system.test.ts"],
  ["npm pack", "test/integration/cli/package.system.test.ts"],
  [`npm install --global proxywarden-${VERSION}.tgz`, "test/integration/cli/package.system.test.ts"],
  [`docker build -t proxywarden:${VERSION} .`, "test/deploy/image.test.ts"],
  [
    `docker run --read-only --stop-timeout 20 -p 127.0.0.1:9713:9713 -v ./config:/etc/proxywarden:ro -v state:/var/lib/proxywarden -e PROXYWARDEN_API_KEY proxywarden:${VERSION}`,
    "test/deploy/image.test.ts",
  ],
  ["docker compose up --build", "test/deploy/compose.test.ts"],
  ["docker compose --profile ha up --build", "test/deploy/compose.test.ts"],
  [
    "helm install proxywarden deploy/helm/proxywarden --namespace proxywarden --create-namespace --values my-values.yaml",
    "test/deploy/helm.system.test.ts",
  ],
  ["useradd --system --no-create-home --shell /usr/sbin/nologin proxywarden", "test/deploy/systemd.system.test.ts"],
  ["systemctl enable --now proxywarden", "test/deploy/systemd.system.test.ts"],
];

/** Slow commands that later ones do not depend on: they run in parallel. */
const RUN_IN_PARALLEL = /^npm start -- run /;

const testedElsewhere = new Map(TESTED_ELSEWHERE);
/** The tutorial has a test of its own, because its commands build on each other. */
const documented = docPages()
  .filter(({ path }) => path !== "docs/tutorial.md")
  .flatMap(commandsOf);

test("every documented command exits with 0", async () => {
  const reader = await startDocsReader();
  // Recorded before the documented backup, which later replaces the state of the daemon.
  await reader.daemon().runCli("hold", reader.healthyNode, "--reason", "its disk is swapped");
  const failures: Promise<string | null>[] = [];
  for (const { page, line, text } of documented.filter(({ text }) => !testedElsewhere.has(text))) {
    const failure = reader
      .runShell(text)
      .then(({ code, out, err }) =>
        code === 0 ? null : `${page}:${line}: ${text}\nexited with ${code}:\n${err}${out}`,
      );
    failures.push(failure);
    if (!RUN_IN_PARALLEL.test(text)) await failure;
  }
  expect((await Promise.all(failures)).filter((failure) => failure !== null)).toEqual([]);
  const { holds } = await reader.daemon().explain(reader.healthyNode);
  expect(holds).toMatchObject([{ reason: expect.stringContaining("its disk is swapped") }]);
  expect(existsSync(reader.localPath("var/lib/proxywarden/broken/proxywarden.db"))).toBe(true);
});

test("commands that are tested elsewhere are documented, and their tests exist", () => {
  const texts = new Set(documented.map(({ text }) => text));
  expect(TESTED_ELSEWHERE.filter(([command]) => !texts.has(command))).toEqual([]);
  expect(TESTED_ELSEWHERE.filter(([, testedBy]) => !existsSync(join(ROOT, testedBy)))).toEqual([]);
});

test("code blocks have only known languages, so no command is missed", () => {
  const known = ["", "json", "sh", "yaml", "promql", "sql"];
  const unknown = docPages().flatMap((page) => blockLanguages(page).filter((language) => !known.includes(language)));
  expect(unknown).toEqual([]);
  expect(documented.length).toBeGreaterThan(50);
});

test("commands are read without comments, split at && and joined over a backslash", () => {
  const text =
    "Some:\n\n```sh\ncd a && ls # all of it\n\n# alone\ncp one \\\n  two   # both\n```\n```yaml\na: b\n```\n";
  expect(commandsOf({ path: "page.md", text })).toEqual([
    { page: "page.md", line: 4, text: "cd a" },
    { page: "page.md", line: 4, text: "ls" },
    { page: "page.md", line: 7, text: "cp one two" },
  ]);
});

test("the text names only commands and scripts that exist", async () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: object };
  const texts = docPages()
    .map(({ text }) => text)
    .join("\n");
  const named = (pattern: RegExp) => [...texts.matchAll(pattern)].map(([, name]) => name!);
  const commands = named(/`(?:proxywarden|npm start --) ([a-z][a-z-]*)/g);
  expect(commands).toEqual(expect.arrayContaining(["explain", "simulate", "policy"]));
  const output = await captureOutput(async (context) => {
    const known = createProgram(context).commands.map((command) => command.name());
    expect(commands.filter((name) => !known.includes(name))).toEqual([]);
    return EXIT_OK;
  });
  expect(output.code).toBe(EXIT_OK);
  const runs = named(/\bnpm run ([\w:-]+)/g);
  expect(runs).toContain("docs");
  expect(runs.filter((name) => !(name in scripts))).toEqual([]);
  // The npm of the documentation's reader has only this script.
  expect(scripts).toMatchObject({ start: "exec node --max-semi-space-size=4 --v8-pool-size=1 src/main.ts" });
});
