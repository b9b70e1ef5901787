import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { EXIT_FAILURE, EXIT_OK, EXIT_USAGE, type ExitCode } from "../../../src/cli/context.ts";
import { createProgram } from "../../../src/cli/program.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { captureOutput } from "../../cli/terminal.ts";
import { type ProcessResult, startCommand, startProcess, waitForStderr } from "../process.ts";
import {
  ADMIN_TOKEN,
  type HealingSetup,
  type RunningDaemon,
  rebootOffline,
  startDaemonFor,
  startHealingSetup,
} from "../remediation/healing-daemon.ts";
import { waitUntil } from "../wait-until.ts";

/** Somebody who does what the documentation says, on a machine of their own. */
interface DocsReader {
  /** A path of that machine, such as `/var/backups/proxywarden.db`, where it is on this one. */
  localPath(path: string): string;
  /** Their daemon, as it is by now. */
  readonly daemon: () => RunningDaemon;
  /** A node that nothing befalls. */
  readonly healthyNode: string;
  /** Types a command into a real shell. `proxywarden` runs in this process; `systemctl` starts and stops its daemon. */
  runShell(command: string): Promise<ProcessResult>;
}

const CHECKOUT = join(import.meta.dirname, "../../..");
const OUTAGE = { failureMode: "outage", remedy: "reboot" } as const;
/** More nodes that fire than this open the breaker. */
const BREAKER_NODES = 2;

/** Programs of the reader's machine that ask this process: each posts its words, one a line, and ends as it is told. */
const FORWARDING_SCRIPT = `#!/bin/bash
words=("$(basename "$0")")
for word in "$@"; do [[ -f $word ]] && word=$(realpath "$word"); words+=("$word"); done
printf '%s\\n' "\${words[@]}" | exec curl --silent --show-error --fail-with-body --data-binary @- "$ASKED"
`;
/** What package.json says that \`npm start\` is; any other script fails, for it is not the reader's to run. */
const NPM = `#!/bin/bash
[[ "$1 $2" == "start --" ]] && exec proxywarden "\${@:3}"
echo "npm $*: not here" >&2; exit 1
`;

/**
 * Starts a reader who has the checkout's files, a daemon that approves by hand, a node that waits for it, and the files
 * that the documentation takes for granted.
 */
export async function startDocsReader(): Promise<DocsReader> {
  const setup = await startHealingSetup();
  const { folder, nodes, interventions } = setup;
  const at = (path: string) => join(folder.path, path);
  for (const name of ["var/backups", "var/lib", "etc", "bin", "home"]) mkdirSync(at(name), { recursive: true });
  for (const name of ["config", "deploy"]) cpSync(join(CHECKOUT, name), at(name), { recursive: true });
  const config = setup.writeConfig([rebootOffline({ mode: "approve" })], {
    state: { path: at("var/lib/proxywarden") },
    safety: {
      ...{ mode: "approve", storm_cooldown: "0s", trust: { warmup_walks: 1 } },
      breaker: { percent: "1%", amount: BREAKER_NODES, within: "1d" },
    },
  });
  createReaderFiles(setup);
  let daemon = await startDaemonFor(setup, config);
  const ill = nodes[0]!;
  interventions.startFailure(ill, OUTAGE);
  const awaiting = await waitUntil("an action waits for a person", async () =>
    (await daemon.actions()).find(({ state }) => state === "awaiting"),
  );

  async function openBreaker() {
    for (const node of nodes.slice(1, BREAKER_NODES + 2)) interventions.startFailure(node, OUTAGE);
    await waitUntil("the breaker is open", async () => (await daemon.scrape()).sum("proxywarden_breaker_open") === 1);
  }

  async function systemctl(verb: string): Promise<ExitCode> {
    if (verb === "stop") await daemon.app.stop();
    else if (verb === "start") daemon = await startDaemonFor(setup, config);
    else if (verb === "reload") return (await daemon.app.reload()).ok ? EXIT_OK : EXIT_FAILURE;
    else return EXIT_FAILURE;
    return EXIT_OK;
  }

  const answer = async ([program, ...args]: readonly string[]): Promise<ProcessResult> => {
    if (program === "systemctl") return { code: await systemctl(args[0]!), out: "", err: "" };
    if (args[0] === "run") return runAndStop(args);
    // A long computation would block the daemon of this process.
    if (args.includes("test")) return startCommand(...args).ended;
    if (args[0] === "reset-breaker") await openBreaker();
    return runInProcess(args, daemon.app.url());
  };
  const asked = await serveForwardedCommands(answer);
  const standIns: readonly (readonly [RegExp, () => string])[] = [
    [/\bNODE_ID\b|\bnode_\d+\b/g, () => ill],
    [/\bact-\d+\b/g, () => awaiting.id],
    [/http:\/\/127\.0\.0\.1:9713/g, () => daemon.app.url()],
    // The reader has made a new one, and the daemon here has its own.
    [/\$\(cat \/etc\/proxywarden\/admin_token\)/g, () => ADMIN_TOKEN],
    // The reader is root, and this user need not be.
    [/ -o proxywarden -g proxywarden /g, () => " "],
    [/(?<= )\/(?=etc\/|var\/)/g, () => `${folder.path}/`],
  ];
  return {
    localPath: at,
    daemon: () => daemon,
    healthyNode: nodes.at(-1)!,
    async runShell(command) {
      const typed = standIns.reduce((line, [placeholder, real]) => line.replace(placeholder, real), command);
      const environment = {
        ...{ PATH: `${at("bin")}:${dirname(process.execPath)}:${process.env.PATH}`, HOME: at("home") },
        ...{ ASKED: asked, PW: daemon.app.url(), ROOT: folder.path },
      };
      // Arrays of zsh begin at 1.
      const shell = `fpath=("" "$HOME/zsh"); cd "$ROOT" && ${typed}`;
      const ended = await startProcess("bash", ["-c", shell], "", environment).ended;
      fillInExampleConfig(setup, "config/my.yaml", { listen: "127.0.0.1:0", state: "state" });
      const { host } = new URL(daemon.app.url());
      fillInExampleConfig(setup, "etc/proxywarden/proxywarden.yaml", { listen: host, state: "var/lib/proxywarden" });
      return ended;
    },
  };
}

/** The files that a reader has, by other means than the documentation's commands. */
function createReaderFiles({ folder }: HealingSetup): void {
  const offline = readFileSync(join(CHECKOUT, "config/policies/offline.yaml"), "utf8");
  folder.write("old.yaml", offline);
  folder.write("new.yaml", offline.replace("for: 15m", "for: 5m"));
  folder.write("api_key", SIMULATION_KEY);
  // What a page of the daemon refuses is no success.
  folder.write("home/.curlrc", "fail-with-body\n");
  folder.write("t", readFileSync(folder.pathOf("admin"), "utf8"));
  // Folders that a shell makes, or its user, before anything is put there.
  for (const name of [".local/share/bash-completion/completions", ".config/fish/completions", "zsh"]) {
    mkdirSync(folder.pathOf(join("home", name)), { recursive: true });
  }
  const programs = { npm: NPM, proxywarden: FORWARDING_SCRIPT, systemctl: FORWARDING_SCRIPT };
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(folder.pathOf(join("bin", name)), script, { mode: 0o755 });
  }
}

/** Sets in the example of a configuration what the documentation says is to be set, once it was copied. */
function fillInExampleConfig(
  { folder, serviceProxy }: HealingSetup,
  file: string,
  { listen, state }: { listen: string; state: string },
): void {
  if (!existsSync(folder.pathOf(file))) return;
  const before = readFileSync(folder.pathOf(file), "utf8");
  const text = before
    .replace("https://proxy.example.net", serviceProxy.url)
    .replace("path: /var/lib/proxywarden", `path: ${folder.pathOf(state)}`)
    .replace(/listen: \S+/, `listen: ${listen}`);
  if (text !== before) folder.write(file, text);
}

const ENVIRONMENT = { PROXYWARDEN_API_KEY: SIMULATION_KEY };

/** What runs until it is told to stop is told so once it is at work. */
async function runAndStop(args: readonly string[]): Promise<ProcessResult> {
  const daemon = startProcess(process.execPath, [join(CHECKOUT, "src/main.ts"), ...args], "", ENVIRONMENT);
  await waitForStderr(daemon, /"msg":"daemon started"/);
  daemon.kill("SIGTERM");
  return daemon.ended;
}

/** Runs a command line here, towards the daemon at `url` where it has no other. */
async function runInProcess(args: readonly string[], url: string): Promise<ProcessResult> {
  try {
    return await captureOutput(async (context) => {
      let code: ExitCode = EXIT_OK;
      const program = createProgram(context, (finished) => {
        code = finished;
      });
      const command = program.commands.find((each) => each.name() === args[0]);
      const asksDaemon = command?.options.some(({ long }) => long === "--url") && !args.includes("--url");
      await program.parseAsync([...args, ...(asksDaemon ? ["--url", url] : [])], { from: "user" });
      return code;
    }, ENVIRONMENT);
  } catch (error) {
    return { code: EXIT_USAGE, out: "", err: String(error) };
  }
}

/** Listens for the words of a command, and answers with what it says; a status of its own where it did not end with 0. */
async function serveForwardedCommands(answer: (words: readonly string[]) => Promise<ProcessResult>): Promise<string> {
  const respond = async (request: IncomingMessage) => {
    const words = (await text(request)).trimEnd().split("\n");
    return await answer(words).catch((error: unknown) => ({ code: null, out: "", err: String(error) }));
  };
  const server = createServer((request, response) => {
    void respond(request).then(({ code, out, err }) => {
      response.writeHead(code === EXIT_OK ? 200 : 500).end(code === EXIT_OK ? out : err + out);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
