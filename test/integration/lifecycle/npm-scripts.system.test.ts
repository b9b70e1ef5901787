import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { commandsOf, docPages } from "../documentation/doc-pages.ts";
import { COMPILE_CACHE, type RunningProcess, startProcess, waitForStderr } from "../process.ts";
import { configText, startNetwork } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** Starting npm and then the daemon takes seconds on a busy machine. */
const TEST_MS_MAX = 60_000;

/** Returns the words of the command in README that begins with `start`. */
function readmeCommand(start: string): readonly string[] {
  const readme = docPages().filter(({ path }) => path === "README.md");
  const command = readme.flatMap(commandsOf).find(({ text }) => text.startsWith(start));
  if (command === undefined) throw new Error(`README has no command ${start}`);
  return command.text.split(" ");
}

/** Returns the only child of a process. */
const childOf = ({ pid }: RunningProcess): number => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  expect(children).toHaveLength(1);
  return Number(children[0]);
};

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Starts README's command for the daemon with a configuration of its own. */
async function startWithNpm() {
  const network = await startNetwork({ speed: 1 });
  const folder = createTempFolder();
  const file = folder.write("my.yaml", configText(network.url, { state: { path: folder.pathOf("state") } }));
  const [npm = "", ...args] = readmeCommand("npm start -- run").map((word) => (word.endsWith(".yaml") ? file : word));
  const started = startProcess(npm, args, "", COMPILE_CACHE);
  await waitForStderr(started, /"msg":"daemon started"/);
  const child = childOf(started);
  onTestFinished(() => void (isRunning(child) && process.kill(child, "SIGKILL")));
  return { started, child };
}

test(
  "SIGTERM to npm ends the daemon of README's command with 0, and no process stays",
  async () => {
    const { started, child } = await startWithNpm();
    started.kill("SIGTERM");
    expect((await started.ended).code).toBe(0);
    expect(started.err()).toContain('"msg":"stopping"');
    expect(isRunning(child)).toBe(false);
  },
  TEST_MS_MAX,
);

test(
  "SIGTERM to npm's child ends both with 0",
  async () => {
    const { started, child } = await startWithNpm();
    process.kill(child, "SIGTERM");
    expect((await started.ended).code).toBe(0);
    expect(started.err()).toContain('"msg":"stopping"');
  },
  TEST_MS_MAX,
);

test(
  "SIGTERM to both, as process managers send it, lets the daemon stop in order although npm forwards its signal",
  async () => {
    const { started, child } = await startWithNpm();
    process.kill(child, "SIGTERM");
    started.kill("SIGTERM");
    expect((await started.ended).code).toBe(0);
    expect(isRunning(child)).toBe(false);
  },
  TEST_MS_MAX,
);

test(
  "SIGTERM to npm ends the demo with its report, and no process stays",
  async () => {
    const [npm = "", ...args] = readmeCommand("npm run demo");
    const started = startProcess(
      npm,
      [...args, "--", "--port", "0", "--nodes", "20", "--sessions", "20"],
      "",
      COMPILE_CACHE,
    );
    await waitUntil("the demo has started", () => started.out().includes("Events:"));
    const child = childOf(started);
    onTestFinished(() => void (isRunning(child) && process.kill(child, "SIGKILL")));
    started.kill("SIGTERM");
    const { code, out } = await started.ended;
    expect(code).toBe(0);
    expect(out).toMatch(/^ +\d+ +answered 429$/m);
    expect(isRunning(child)).toBe(false);
  },
  TEST_MS_MAX,
);
