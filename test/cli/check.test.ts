import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { runCheck } from "../../src/cli/check.ts";
import { openSqliteStore } from "../../src/journal/sqlite/store.ts";
import { orThrow } from "../harness/or-throw.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { captureOutput } from "./terminal.ts";

/** Writes a configuration with a section `safety`. */
function configured(safety: object = {}) {
  const folder = createTempFolder();
  folder.write("key", "sesame\n");
  folder.write(
    "offline.yaml",
    "policies: [{ name: offline, when: node.status == 'offline', for: 15m, steps: [{ action: reboot }] }]",
  );
  const file = folder.write(
    "proxywarden.yaml",
    JSON.stringify({
      service: { base_url: "https://proxy.internal", api_key_file: "key", usage_scale: "ratio" },
      state: { path: folder.pathOf("state") },
      policies: ["offline.yaml"],
      safety,
    }),
  );
  return { folder, file };
}

const run = (file: string, nodes?: number, format: "text" | "json" = "text") =>
  captureOutput((context) =>
    runCheck({ config: file, output: format, ...(nodes === undefined ? {} : { nodes }) }, context),
  );

/** Returns the lines about the limits. */
const limitsIn = (out: string) =>
  out
    .split(/^(?=\S)/m)
    .find((part) => part.startsWith("limits"))!
    .trimEnd()
    .split("\n");

test("prints the limits for the given number of nodes", async () => {
  const { file } = configured();
  expect(limitsIn((await run(file, 500)).out)).toEqual([
    "limits for 500 nodes (from the command line)",
    "  at most 5 nodes disrupted at once, 1 per region",
    "  at most 6 actions in 1h, 1 in flight",
    "  no action while more than 100 nodes are unhealthy",
    "  the breaker opens when more than 25 nodes fire or are lost within 1h",
    "  a hold caused by one of these limits ends automatically, with two exceptions: the breaker waits for an operator (npm start -- reset-breaker), and nodes that are lost or down after an action count until they are back or npm start -- accept-inventory is run",
  ]);
});

test("a share of a small fleet is the smaller limit, and at least one node", async () => {
  const { file } = configured({
    max_disrupted: { percent: "10%", amount: 5 },
    max_disrupted_per: { region: 2, country: 3 },
    max_actions: { amount: 1, per: "30m" },
    max_in_flight: 2,
    breaker: { percent: "10%", amount: 1, within: "1h" },
  });
  const lines = await Promise.all([30, 1].map(async (nodes) => limitsIn((await run(file, nodes)).out).slice(0, 5)));
  expect(lines.flat()).toEqual([
    "limits for 30 nodes (from the command line)",
    "  at most 3 nodes disrupted at once, 2 per region, 3 per country",
    "  at most 1 action in 30m, 2 in flight",
    "  no action while more than 6 nodes are unhealthy",
    "  the breaker opens when more than 3 nodes fire or are lost within 1h",
    "limits for 1 node (from the command line)",
    "  at most 1 node disrupted at once, 1 per region, 1 per country",
    "  at most 1 action in 30m, 2 in flight",
    "  no action while more than 1 node is unhealthy",
    "  the breaker opens when more than 1 node fires or is lost within 1h",
  ]);
});

test("without --nodes it uses the fleet size that the daemon saw last", async () => {
  const { folder, file } = configured();
  const store = orThrow(openSqliteStore(folder.pathOf("state")));
  const size = { nodes: 700, nodePages: 7, sessions: 0, sessionPages: 0 };
  await store.journal.commit([{ kind: "fact", key: "collect.network_size", value: JSON.stringify(size) }]);
  store.close();
  expect(limitsIn((await run(file)).out)).toEqual(
    expect.arrayContaining([
      "limits for 700 nodes (as last seen by the daemon)",
      "  the breaker opens when more than 35 nodes fire or are lost within 1h",
    ]),
  );
  expect(limitsIn((await run(file, 100)).out)[0]).toBe("limits for 100 nodes (from the command line)");
});

test("if the fleet size is unknown, it asks for --nodes", async () => {
  const { file } = configured();
  expect(limitsIn((await run(file)).out)).toEqual([
    "limits for this fleet: the fleet size is unknown; pass --nodes, or ask the service with --probe",
  ]);
});

test("--output json prints the same limits", async () => {
  const { file } = configured();
  const read = async (nodes?: number) => JSON.parse((await run(file, nodes, "json")).out) as { limits: unknown };
  expect((await read(500)).limits).toEqual({
    nodes: 500,
    source: "options",
    max_unhealthy: 100,
    max_disrupted: 5,
    "max_disrupted_per.region": 1,
    "min_online_per.region": 1,
    max_in_flight: 1,
    max_actions: 6,
    breaker: 25,
  });
  expect((await read()).limits).toBeNull();
});

test("refuses the placeholder of the example configuration as the service", async () => {
  const { folder } = configured();
  for (const [host, isPlaceholder] of [
    ["proxy.example.net", true],
    ["api.example", true],
    ["myexample.com", false],
  ] as const) {
    const service = { base_url: `https://${host}`, api_key_file: "key", usage_scale: "ratio" };
    const file = folder.write("other.yaml", JSON.stringify({ service, state: { path: folder.pathOf("state") } }));
    const { code, err } = await run(file);
    const refusal = `${file}:1:24: service.base_url: found "https://${host}", which is the placeholder of the example; must be the URL of your service\n`;
    expect({ code, err }).toEqual(isPlaceholder ? { code: 1, err: refusal } : { code: 0, err: "" });
  }
});

describe("a configuration", () => {
  /** Returns the reasons that check prints for a policy and sections of the configuration. */
  async function reasons(policy: object | null, sections: Readonly<Record<string, object>> = {}) {
    const folder = createTempFolder();
    folder.write("key", "sesame\n");
    const base = { name: "offline", mode: "enforce", when: "node.status == 'offline'", for: "15m" };
    const policies = policy === null ? [] : [{ ...base, steps: [{ action: "reboot" }], ...policy }];
    folder.write("policies.yaml", JSON.stringify({ policies }));
    const config = {
      service: { base_url: "https://proxy.internal", api_key_file: "key", usage_scale: "ratio" },
      state: { path: folder.pathOf("state") },
      receivers: [{ name: "oncall", webhook_url: "http://127.0.0.1:1" }],
      policies: policy === null ? [] : ["policies.yaml"],
      safety: { mode: "enforce" },
      ...sections,
    };
    const { out } = await run(folder.write("proxywarden.yaml", JSON.stringify(config)), 500, "json");
    return (JSON.parse(out) as { enforces_nothing_because: string[] }).enforces_nothing_because;
  }

  test("enforces something if a policy enforces", async () => {
    expect(await reasons({})).toEqual([]);
  });

  test("enforces something if a policy can fire although usage is unknown", async () => {
    const service = { base_url: "https://proxy.internal", api_key_file: "key" };
    const when = "node.status == 'offline' || node.cpu_usage > 0.9";
    expect(await reasons({ when }, { service })).toEqual([]);
  });

  test.each<[what: string, policy: object | null, sections: Readonly<Record<string, object>>, reasons: string[]]>([
    ["no policy is configured", null, {}, ["no policy is in force: the key policies is empty"]],
    [
      "the files have no policy",
      null,
      { policies: ["policies.yaml"] },
      ["no policy is in force: the files listed under policies define none"],
    ],
    ["of the ceiling", {}, { safety: {} }, ["safety.mode is dry_run, the upper limit for the mode of every policy"]],
    [
      "an operator must approve",
      {},
      { safety: { mode: "approve" } },
      ["safety.mode is approve: an operator must approve each action"],
    ],
    ["of the policy's mode", { mode: "dry_run" }, {}, ["policy offline has the mode dry_run"]],
    ["a limit is 0", {}, { safety: { mode: "enforce", max_in_flight: 0 } }, ["safety.max_in_flight is 0"]],
    [
      "the policy only notifies",
      { steps: [{ action: "notify", receiver: "oncall" }] },
      {},
      ["policy offline has no step that acts on a node"],
    ],
    ["the policy may have no episodes", { retry: { episodes: 0 } }, {}, ["policy offline has retry.episodes 0"]],
    [
      "usage is unknown",
      { when: "node.cpu_usage > 0.9" },
      { service: { base_url: "https://proxy.internal", api_key_file: "key" } },
      ["policy offline depends on usage, and service.usage_scale is not set"],
    ],
  ])("enforces nothing because %s", async (_, policy, sections, expected) => {
    expect(await reasons(policy, sections)).toEqual(expected);
  });
});

/** Writes a configuration whose journal was created, and then changed by `change`. */
async function configuredWithJournal(change: (database: string) => void) {
  const { folder, file } = configured();
  const store = orThrow(openSqliteStore(folder.pathOf("state")));
  await store.close();
  const database = folder.pathOf("state/proxywarden.db");
  change(database);
  return { database, file };
}

test("says why a glob matches no file if its folder does not exist or can't be listed", async () => {
  const { folder, file } = configured();
  const errorOf = async (glob: string) => {
    folder.write(
      "proxywarden.yaml",
      readFileSync(file, "utf8").replace(/"policies":\[.*?\]/, `"policies":["${glob}"]`),
    );
    return (await run(file)).err.split("found ")[1];
  };
  expect(await errorOf("policy/*.yaml")).toBe(
    '"policy/*.yaml"; must match at least one file: there is no folder policy\n',
  );
  expect(await errorOf("key/*.yaml")).toBe(
    '"key/*.yaml"; must match at least one file: can\'t list the folder key: ENOTDIR\n',
  );
  expect(await errorOf("*.yml")).toBe('"*.yml"; must match at least one file\n');
});

describe("a state folder", () => {
  async function checkState(path: string) {
    const { folder } = configured();
    const service = { base_url: "https://proxy.internal", api_key_file: "key", usage_scale: "ratio" };
    const { code, err } = await run(folder.write("other.yaml", JSON.stringify({ service, state: { path } })));
    return { code, err };
  }

  test.each([
    ["in a file system without files", "/proc/state", "ENOENT"],
    ["of a name that is too long", join(tmpdir(), "a".repeat(256)), "ENAMETOOLONG"],
  ])("%s is refused, as run refuses it", async (_, path, code) => {
    expect(await checkState(path)).toEqual({
      code: 1,
      err: expect.stringContaining(`state.path: ${path} can't hold a database: ${code}`),
    });
    expect(openSqliteStore(path)).toMatchObject({ ok: false, error: { kind: "unusable" } });
  });

  test("whose database can't be opened is refused, as run refuses it", async () => {
    const folder = createTempFolder();
    mkdirSync(folder.pathOf("state/proxywarden.db"), { recursive: true });
    expect(await checkState(folder.pathOf("state"))).toEqual({
      code: 1,
      err: expect.stringContaining(`${folder.pathOf("state/proxywarden.db")} can't be read`),
    });
    expect(openSqliteStore(folder.pathOf("state"))).toMatchObject({ ok: false, error: { kind: "unusable" } });
  });

  test.each(["state", "not/yet/there"])("that can hold a database is left as it was (%s)", async (name) => {
    const folder = createTempFolder();
    mkdirSync(folder.pathOf("state"));
    expect(await checkState(folder.pathOf(name))).toEqual({ code: 0, err: "" });
    expect(readdirSync(folder.pathOf(""), { recursive: true })).toEqual(["state"]);
  });
});

test("warns that a database that can't be reached was not checked", async () => {
  const { folder, file } = configured();
  folder.write("url", "postgres://nobody@127.0.0.1:1/none");
  const config = JSON.parse(readFileSync(file, "utf8")) as object;
  folder.write("proxywarden.yaml", JSON.stringify({ ...config, state: { postgres: { url_file: "url" } } }));
  const { code, err } = await run(file);
  expect(code).toBe(0);
  expect(err).toMatch(/^warning: .*: state\.postgres: .*ECONNREFUSED.*; nothing in the database was checked\n$/);
});

test.each([
  ["is damaged", (path: string) => truncateSync(path, 5_000), "is damaged (database disk image is malformed)"],
  ["was not migrated yet", (path: string) => writeFileSync(path, ""), "has schema version 0, but this version"],
])("warns about a journal that %s, and names its file", async (_, change, message) => {
  const { database, file } = await configuredWithJournal(change);
  const { code, err, out } = await run(file);
  expect(err).toContain(`warning: ${file}:1:109: state.path: ${database} ${message}`);
  expect([code, out.split("\n")[0]]).toEqual([0, `${file}: valid`]);
  expect(JSON.parse((await run(file, undefined, "json")).out)).toMatchObject({
    valid: true,
    warnings: [{ message: expect.stringContaining(`${database} ${message}`) }],
  });
});

test.each([1000, 1])("refuses a journal with schema version %i, as run does", async (version) => {
  const { database, file } = await configuredWithJournal((path) => {
    const journal = new DatabaseSync(path);
    journal.exec(`PRAGMA user_version = ${version}`);
    journal.close();
  });
  const { code, err } = await run(file);
  expect([code, err]).toEqual([
    1,
    expect.stringContaining(`${file}:1:109: state.path: ${database} has schema version ${version}, but this`),
  ]);
});
