import { posix } from "node:path";
import { describe, expect, test } from "vitest";
import { VERSION } from "../../src/cli/context.ts";
import { isInRepository, parseCommand, parseRepositoryConfig, textOf } from "./manifest.ts";

interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** The instructions of each stage, in order. */
function stagesOf(dockerfile: string): readonly (readonly Instruction[])[] {
  const lines = dockerfile
    .replace(/^#.*\n/gm, "")
    .replace(/\\\n/g, " ")
    .split("\n");
  const stages: Instruction[][] = [];
  for (const line of lines.filter((each) => each.trim() !== "")) {
    const [, name, rest] = /^([A-Z]+)\s+(.*)$/.exec(line)!;
    if (name === "FROM") stages.push([]);
    stages.at(-1)!.push({ name: name!, rest: rest! });
  }
  return stages;
}

const stages = stagesOf(textOf("Dockerfile"));
const final = stages.at(-1)!;
const onlyInstruction = (name: string): string => {
  const found = final.filter((instruction) => instruction.name === name);
  if (found.length !== 1) throw new Error(`${name} stands ${found.length} times in the last stage`);
  return found[0]!.rest;
};
const execForm = (text: string): readonly string[] => JSON.parse(text) as string[];
const shipped = parseRepositoryConfig("config/proxywarden.yaml", { PROXYWARDEN_API_KEY: "sesame" }).config;
const manifest = JSON.parse(textOf("package.json")) as { devDependencies: Record<string, string> };

test("it is built with the tested version of Node.js and runs on the same major version, without a shell or root", () => {
  const { node } = manifest.devDependencies;
  const bases = stages.map(([from]) => from!.rest.split(" ")[0]);
  expect(bases).toEqual([
    `node:${node}-trixie-slim`,
    `node:${node}-trixie-slim`,
    `gcr.io/distroless/nodejs${node!.split(".")[0]}-debian13:nonroot`,
  ]);
  expect(onlyInstruction("USER")).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  // There is nothing to run a step with.
  expect(final.map(({ name }) => name)).not.toContain("RUN");
});

describe("it receives signals directly as process 1:", () => {
  test("the entrypoint is in exec form, followed by one of our commands", async () => {
    expect(execForm(onlyInstruction("ENTRYPOINT"))).toEqual(["/usr/local/bin/proxywarden"]);
    expect(await parseCommand(execForm(onlyInstruction("CMD")))).toMatchObject({
      name: "run",
      options: { config: "/etc/proxywarden/proxywarden.yaml" },
    });
    expect(onlyInstruction("STOPSIGNAL")).toBe("SIGTERM");
  });

  test("the health check is in exec form, and requests the exposed port", async () => {
    const [, interval, command] = /--interval=(\S+).*\sCMD (.*)$/.exec(onlyInstruction("HEALTHCHECK"))!;
    expect(interval).toBe("30s");
    const [program, ...args] = execForm(command!);
    expect(program).toBe(execForm(onlyInstruction("ENTRYPOINT"))[0]);
    const { name, options } = await parseCommand(args);
    expect({ name, ...options }).toEqual({ name: "healthcheck", url: `http://127.0.0.1:${onlyInstruction("EXPOSE")}` });
  });
});

test("port and volume are those of the shipped configuration", () => {
  expect(onlyInstruction("EXPOSE")).toBe(String(shipped.web.listen.port));
  expect(onlyInstruction("VOLUME")).toBe(shipped.state.path);
});

test("the labels describe the image", () => {
  const labels = Object.fromEntries(
    [...onlyInstruction("LABEL").matchAll(/org\.opencontainers\.image\.([\w.]+)="([^"]*)"/g)].map(([, key, value]) => [
      key,
      value,
    ]),
  );
  const { description, license } = JSON.parse(textOf("package.json")) as { description: string; license: string };
  expect(labels).toEqual({
    title: "proxywarden",
    description,
    version: VERSION,
    licenses: license,
    "base.name": stages.at(-1)![0]!.rest,
  });
});

test("the builder gets the copied files, but no secrets, tests or generated files", () => {
  const sources = stages.flatMap((stage) =>
    stage
      .filter(({ name, rest }) => name === "COPY" && !rest.includes("--from="))
      .flatMap(({ rest }) =>
        rest
          .split(" ")
          .filter((word) => !word.startsWith("--"))
          .slice(0, -1),
      ),
  );
  const lines = textOf(".dockerignore").split("\n");
  expect(lines.filter((line) => line !== "" && !/^[#!]/.test(line))).toEqual(["*", "config/my.yaml*"]);
  const allowed = lines.filter((line) => line.startsWith("!")).map((line) => posix.normalize(line.slice(1)));
  expect([...new Set(sources)].sort()).toEqual(allowed.toSorted());
  expect(allowed.filter((path) => !isInRepository(path))).toEqual([]);
});

test("the daemon's files belong to root, and its state to the user it runs as", () => {
  const owners = final
    .filter(({ name }) => name === "COPY")
    .map(({ rest }) => `${rest.split(" ").at(-1)} ${/--chown=(\S+)/.exec(rest)?.[1]}`);
  expect(owners.filter((owner) => !owner.endsWith(" 0:0"))).toEqual([`/var/lib ${onlyInstruction("USER")}`]);
});
