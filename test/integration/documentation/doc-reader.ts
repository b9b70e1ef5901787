import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { EXIT_FAILURE, EXIT_OK, EXIT_USAGE, type ExitCode } from "../../../src/cli/context.ts";
import { createProgram } from "../../../src/cli/program.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { captureOutput } from "../../cli/terminal.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";
import { type ProcessResult, startCommand, startProcess, startScript, waitForStderr } from "../process.ts";
import {
  ADMIN_TOKEN,
  type HealingSetup,
  type RunningDaemon,
  rebootOffline,
  startDaemonFor,
  startHealingSetup,
} from "../remediation/healing-daemon.ts";
import { waitUntil } from "../wait-until.ts";

/** A reader who types the documented commands on a machine of their own. */
interface DocsReader {
  /** Returns the local path of a path on the reader's machine, such as `/var/backups/proxywarden.db`. */
  localPath(path: string): string;
  /** The daemon of the reader; a restart replaces it. */
  readonly daemon: () => RunningDaemon;
  /** A node that stays healthy. */
  readonly healthyNode: string;
  /** Runs a command in a real shell. `proxywarden` runs in this process; `systemctl` starts and stops the daemon. */
  runShell(command: string): Promise<ProcessResult>;
}

const CHECKOUT = join(import.meta.dirname, "../../..");
const OUTAGE = { failureMode: "outage", remedy: "reboot" } as const;
/** The breaker opens when more nodes fire. */
const BREAKER_NODES = 2;

/**
 * A program of the reader that this process executes: it posts its arguments, one per line, and exits as the response
 * says.
 */
const FORWARDING_SCRIPT = `#!/bin/bash
words=("$(basename "$0")")
for word in "$@"; do [[ -f $word ]] && word=$(realpath "$word"); words+=("$word"); done
printf '%s\\n' "\${words[@]}" | exec curl --silent --show-error --fail-with-body --data-binary @- "$FORWARDING_URL"
`;
/** `npm start` as in package.json. Other scripts fail. */
const NPM = `#!/bin/bash
[[ "$1 $2" == "start --" ]] && exec proxywarden "\${@:3}"
echo "npm $*: not here" >&2; exit 1
`;

/**
 * Creates a reader with the files of the checkout and those that the documentation assumes, a daemon in approve mode,
 * and an action that waits for approval.
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
      mode: "approve",
      storm_cooldown: "0s",
      trust: { warmup_walks: 1 },
      breaker: { percent: "1%", amount: BREAKER_NODES, within: "1d" },
    },
  });
  createReaderFiles(setup);
  let daemon = await startDaemonFor(setup, config);
  const unhealthyNode = nodes[0]!;
  interventions.startFailure(unhealthyNode, OUTAGE);
  const awaiting = await waitUntil("an action waits for approval", async () =>
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
  const forwardingUrl = await serveForwardedCommands(answer);
  const replacements: readonly (readonly [RegExp, () => string])[] = [
    [/\bNODE_ID\b|\bnode_\d+\b/g, () => unhealthyNode],
    [/\bact-\d+\b/g, () => awaiting.id],
    [/http:\/\/127\.0\.0\.1:9713/g, () => daemon.app.url()],
    // The daemon has a token of its own.
    [/\$\(cat \/etc\/proxywarden\/admin_token\)/g, () => ADMIN_TOKEN],
    // The reader is root, the user of the test may not be.
    [/ -o proxywarden -g proxywarden /g, () => " "],
    [/(?<= )\/(?=etc\/|var\/)/g, () => `${folder.path}/`],
  ];
  return {
    localPath: at,
    daemon: () => daemon,
    healthyNode: nodes.at(-1)!,
    async runShell(command) {
      const typed = replacements.reduce((line, [placeholder, real]) => line.replace(placeholder, real), command);
      const environment = {
        PATH: `${at("bin")}:${dirname(process.execPath)}:${process.env.PATH}`,
        HOME: at("home"),
        FORWARDING_URL: forwardingUrl,
        PW: daemon.app.url(),
        ROOT: folder.path,
      };
      // The first index of an array is 1 in zsh, 0 in bash.
      const shell = `fpath=("" "$HOME/zsh"); cd "$ROOT" && ${typed}`;
      const ended = await startProcess("bash", ["-c", shell], "", environment).ended;
      fillInExampleConfig(setup, "config/my.yaml", { listen: "127.0.0.1:0", state: "state" });
      const { host } = new URL(daemon.app.url());
      fillInExampleConfig(setup, "etc/proxywarden/proxywarden.yaml", { listen: host, state: "var/lib/proxywarden" });
      return ended;
    },
  };
}

/** Creates the files that the documentation assumes. */
function createReaderFiles({ folder }: HealingSetup): void {
  const offline = readFileSync(join(CHECKOUT, "config/policies/offline.yaml"), "utf8");
  folder.write("old.yaml", offline);
  folder.write("new.yaml", offline.replace("for: 15m", "for: 5m"));
  folder.write("api_key", SIMULATION_KEY);
  // An error response is a failure.
  folder.write("home/.curlrc", "fail-with-body\n");
  folder.write("t", readFileSync(folder.pathOf("admin"), "utf8"));
  // Folders that shells and users create.
  for (const name of [".local/share/bash-completion/completions", ".config/fish/completions", "zsh"]) {
    mkdirSync(folder.pathOf(join("home", name)), { recursive: true });
  }
  const programs = { npm: NPM, proxywarden: FORWARDING_SCRIPT, systemctl: FORWARDING_SCRIPT };
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(folder.pathOf(join("bin", name)), script, { mode: 0o755 });
  }
}

/** Sets in a copied example configuration what the documentation tells the reader to set. */
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

/** Runs a daemon and stops it once it has started. */
async function runAndStop(args: readonly string[]): Promise<ProcessResult> {
  const daemon = startScript(join(CHECKOUT, "src/main.ts"), args, ENVIRONMENT);
  await waitForStderr(daemon, /"msg":"daemon started"/);
  daemon.kill("SIGTERM");
  return daemon.ended;
}

/** Runs a command line in this process, with the daemon at `url` unless it names another. */
async function runInProcess(args: readonly string[], url: string): Promise<ProcessResult> {
  try {
    return await captureOutput(async (context) => {
      const program = createProgram(context);
      const command = program.commands.find((each) => each.name() === args[0]);
      const needsUrl = command?.options.some(({ long }) => long === "--url") && !args.includes("--url");
      await program.parseAsync([...args, ...(needsUrl ? ["--url", url] : [])], { from: "user" });
    }, ENVIRONMENT);
  } catch (error) {
    return { code: EXIT_USAGE, out: "", err: String(error) };
  }
}

/** Serves forwarded commands: responds with the output, and with status 500 unless the command exits with 0. */
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
  return `http://127.0.0.1:${await listenInTest(server)}`;
}
