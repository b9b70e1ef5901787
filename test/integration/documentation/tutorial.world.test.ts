import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type DurationMs, MINUTE_MS } from "../../../src/base/duration.ts";
import { freePort } from "../../harness/servers/free-port.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { type ProcessResult, type RunningProcess, startProcess } from "../process.ts";
import { waitUntil } from "../wait-until.ts";
import { commandsOf, docPages } from "./doc-pages.ts";

const CHECKOUT = join(import.meta.dirname, "../../..");
const TUTORIAL = docPages().filter(({ path }) => path === "docs/tutorial.md");

/** Commands that run until Ctrl-C, and what they print once they are ready. */
const LASTING: readonly (readonly [start: string, ready: RegExp])[] = [
  ["npm start -- simulate", /^simulated service with 200 nodes/m],
  ["npm start -- run", /daemon started/],
];

/**
 * What the reader sees on the status page before a command, by the route that shows it, and what the command then
 * prints.
 */
const AWAITED: readonly (readonly [command: string, route: string, shown: RegExp, printed: RegExp])[] = [
  ["npm start -- nodes --status offline", "nodes?limit=1000", /iad-0028/, /iad-0028[\s\S]*iad-0199/],
  ["npm start -- decisions", "decisions", /"verdict":"act"/, /reboot-offline/],
  ["npm start -- explain iad-0028", "actions", /"outcome":"dry_run"/, /dry run: not sent/],
  ["npm start -- actions", "actions", /"outcome":"verified"/, /iad-0028.*verified/],
  // The second node takes two more minutes.
  [
    "npm start -- explain iad-0199",
    "actions",
    /"outcome":"verified"[\s\S]*"outcome":"verified"/,
    /verified[\s\S]*ineffective/,
  ],
];
/** npm and the daemon start in seconds, but not on a busy machine. */
const STARTED_MS_MAX: DurationMs = 2 * MINUTE_MS;
/** The tutorial promises the first healed node within ten minutes, most of which the reader spends reading. */
const AWAITED_MS_MAX: DurationMs = 5 * MINUTE_MS;

/** A reader in a checkout with ports of its own, with a real npm and a real shell. */
async function startReader() {
  const folder = createTempFolder();
  const [daemonPort, servicePort] = [await freePort(), await freePort()];
  const inCheckout = (name: string) => join(CHECKOUT, name);
  cpSync(inCheckout("config"), folder.pathOf("config"), { recursive: true });
  for (const name of ["src", "node_modules", "package.json"]) symlinkSync(inCheckout(name), folder.pathOf(name));
  mkdirSync(folder.pathOf("home"));
  const withPorts = (text: string) =>
    text
      .replaceAll("127.0.0.1:9713", `127.0.0.1:${daemonPort}`)
      .replaceAll("9714", String(servicePort))
      .replaceAll("0.0.0.0:9713", `127.0.0.1:${daemonPort}`)
      .replaceAll("https://proxy.internal", `http://127.0.0.1:${servicePort}`);
  for (const name of ["config/first-hour/proxywarden.yaml", "config/proxywarden.yaml"])
    writeFileSync(folder.pathOf(name), withPorts(readFileSync(folder.pathOf(name), "utf8")));
  const commandWithPorts = (text: string) => {
    const command = withPorts(text).replaceAll("PROXYWARDEN_API_KEY=…", "PROXYWARDEN_API_KEY=first-hour");
    if (command.includes(" simulate ")) return `${command} --port ${servicePort}`;
    const asksDaemon = / -- (?:status|nodes|decisions|actions|orders|explain|pause|resume|hold|release)\b/.test(
      command,
    );
    return asksDaemon ? `${command} --url http://127.0.0.1:${daemonPort}` : command;
  };
  const exported: string[] = [];
  return {
    daemonUrl: `http://127.0.0.1:${daemonPort}`,
    /** Starts a command in a shell with the variables that the reader has exported. */
    start(text: string): RunningProcess {
      const command = commandWithPorts(text);
      if (command.startsWith("export ")) exported.push(command);
      // The shell becomes the command, so that a signal reaches npm.
      const line = LASTING.some(([start]) => text.startsWith(start)) ? `exec ${command}` : command;
      const environment = { HOME: folder.pathOf("home"), PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
      const script = ["set -e", `cd '${folder.path}'`, ...exported, line].join("\n");
      return startProcess("bash", ["-c", script], "", environment);
    },
  };
}

test(
  "every command of the tutorial works, from the simulated network to the first healed nodes and the shipped configuration",
  async () => {
    const reader = await startReader();
    const lasting: RunningProcess[] = [];
    const runOnce = async (text: string): Promise<ProcessResult> => {
      const ended = await reader.start(text).ended;
      expect(ended.code, `${text}\n${ended.err}${ended.out}`).toBe(0);
      return ended;
    };
    const commands = TUTORIAL.flatMap(commandsOf).map(({ text }) => text);
    expect(commands.length).toBeGreaterThan(20);
    for (const text of commands.filter((command) => command !== "npm ci")) {
      const ready = LASTING.find(([start]) => text.startsWith(start))?.[1];
      if (ready !== undefined) {
        // The page says to stop the first daemon before the second one starts.
        if (lasting.length === 2) lasting[1]!.kill("SIGTERM");
        await lasting[1]?.ended;
        const started = reader.start(text);
        lasting.push(started);
        // npm must be stopped before it is killed, or its child stays.
        onTestFinished(async () => {
          started.kill("SIGTERM");
          await started.ended;
        });
        await waitUntil(
          () => `${text} is ready; it printed:\n${started.out()}${started.err()}`,
          () => ready.test(started.out() + started.err()),
          STARTED_MS_MAX,
        );
      } else {
        const [, route, shown, printed] = AWAITED.find(([command]) => text === command) ?? [];
        if (shown !== undefined) {
          let last = "";
          const probe = async () => {
            last = await (await fetch(`${reader.daemonUrl}/api/v1/${route}`)).text();
            return shown.test(last);
          };
          await waitUntil(() => `${route} shows ${shown}; it shows:\n${last.slice(0, 4_000)}`, probe, AWAITED_MS_MAX);
        }
        const { out } = await runOnce(text);
        if (printed !== undefined) expect(out).toMatch(printed);
      }
    }
  },
  10 * MINUTE_MS,
);
