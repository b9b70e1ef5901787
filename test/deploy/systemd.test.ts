import { expect, test } from "vitest";
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
