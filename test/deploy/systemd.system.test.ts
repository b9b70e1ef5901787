import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createTempFolder } from "../harness/temp-folder.ts";
import { COMPILE_CACHE, requireProgram, startProcess, waitForStderr } from "../integration/process.ts";
import { configText } from "../integration/simulated-network.ts";
import { parseCommand, parseRepositoryConfig, textOf } from "./manifest.ts";

/** Every value that a key of the unit has, in order. */
const values = (key: string): readonly string[] =>
  [...textOf("deploy/systemd/proxywarden.service").matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(
    ([, value]) => value!,
  );

const PROGRAM = "/usr/local/bin/proxywarden";
const CONFIG = "/etc/proxywarden/proxywarden.yaml";

/** A line that runs a command of ours, as the program reads it. */
async function commandIn(line: string) {
  const [program, ...args] = line.split(" ");
  expect(program).toBe(PROGRAM);
  const { name, options } = await parseCommand(args);
  return { name, config: options.config };
}

test("the unit runs the daemon, and a reload that is refused by check never reaches it", async () => {
  expect(await Promise.all(values("ExecStart").map(commandIn))).toEqual([{ name: "run", config: CONFIG }]);
  const [first, second, ...rest] = values("ExecReload");
  expect(await commandIn(first!)).toEqual({ name: "check", config: CONFIG });
  expect([second, ...rest]).toEqual(["/bin/kill -HUP $MAINPID"]);
});

test("its state folder is that of the shipped configuration, for its user only", () => {
  const { path } = parseRepositoryConfig("config/proxywarden.yaml", { PROXYWARDEN_API_KEY: "sesame" }).config.state;
  expect(values("StateDirectory").map((name) => `/var/lib/${name}`)).toEqual([path]);
  expect(values("StateDirectoryMode")).toEqual(["0700"]);
});

test("it can be enabled, and restarts after a failure", () => {
  expect(values("WantedBy")).toEqual(["multi-user.target"]);
  expect(values("Restart")).toEqual(["on-failure"]);
});

test("its user is the one that the documentation creates, and it has more than the 10 s that it needs to stop", () => {
  const [user] = values("User");
  expect(textOf("docs/operate.md")).toMatch(new RegExp(`^useradd .* ${user}$`, "m"));
  expect(values("Group")).toEqual([user]);
  expect(Number(/^(\d+)s$/.exec(values("TimeoutStopSec")[0]!)![1])).toBeGreaterThan(10);
});

test("it lets Node.js compile at run time, without capabilities or writable folders other than its state", () => {
  expect(values("MemoryDenyWriteExecute")).toEqual([]);
  expect(values("CapabilityBoundingSet")).toEqual([""]);
  expect(values("ProtectSystem")).toEqual(["strict"]);
  expect(values("ReadWritePaths")).toEqual([]);
});

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/**
 * Runs a command (the arguments after the first) in which sockets can only have the address families of the first
 * argument, separated by spaces, as systemd does with RestrictAddressFamilies: a BPF program, as in seccomp(2), makes
 * socket() fail with EAFNOSUPPORT for all others.
 */
const RESTRICT_ADDRESS_FAMILIES = `
import ctypes, os, platform, socket, struct, sys
families = [getattr(socket, name) for name in sys.argv[1].split()]
socket_call = {"x86_64": 41, "aarch64": 198}[platform.machine()]
LOAD, IS_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | 97
instructions = [(LOAD, 0, 0, 0), (IS_EQUAL, 0, len(families) + 2, socket_call), (LOAD, 0, 0, 16)]
instructions += [(IS_EQUAL, len(families) - index, 0, family) for index, family in enumerate(families)]
instructions += [(RETURN, 0, 0, FAIL), (RETURN, 0, 0, ALLOW)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
filter = Filter(len(instructions), ctypes.addressof(program))
for call in [(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter), 0, 0)]:
    if libc.prctl(*call) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
`;

test("the daemon listens on all interfaces with the address families that the unit allows", async () => {
  const [families] = values("RestrictAddressFamilies");
  const folder = createTempFolder();
  const sections = { state: { path: folder.pathOf("state") }, web: { listen: "0.0.0.0:0" } };
  const config = folder.write("proxywarden.yaml", configText("http://127.0.0.1:9", sections));
  const daemon = startProcess(
    requireProgram("/usr/bin/python3", "python3"),
    ["-c", RESTRICT_ADDRESS_FAMILIES, families!, process.execPath, MAIN, "run", "--config", config],
    "",
    COMPILE_CACHE,
  );
  const [, url] = await waitForStderr(daemon, /"url":"([^"]+)".*"msg":"daemon started"/);
  expect((await fetch(`${url}/-/healthy`)).status).toBe(200);
});

test("it allows the system calls for memory protection keys, with which Node.js protects compiled code", () => {
  expect(values("SystemCallFilter")).toEqual(["@system-service @pkey"]);
});
