import { rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readTextFile } from "../../../src/platform/text-file.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { runInProcess } from "../../cli/terminal.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { parseMetricsPage } from "../metrics-page.ts";
import { COMPILE_CACHE, runCommand, startCommand, startProcess, waitForStderr } from "../process.ts";
import { configText, startNetwork, startTestDaemon } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

const VALID = `service:
  base_url: https://proxy.internal
  api_key: sesame
  usage_scale: ratio
`;

/** Three errors, on the lines 4, 7 and 9. */
const THREE_ERRORS = `service:
  base_url: https://proxy.internal
  api_key: sesame
  usage_scael: ratio
collect:
  nodes:
    every: sixty
limits:
  reserve: 120%
`;

test("a usage error exits with 2 and names the problem", async () => {
  const [typo, noCommand] = await Promise.all([runCommand("chekc"), runInProcess()]);
  expect(typo).toEqual({ code: 2, out: "", err: expect.stringMatching(/unknown command 'chekc'/) });
  expect(noCommand).toEqual({ code: 2, out: "", err: expect.stringMatching(/Usage: npm start -- \[options\]/) });
});

test("--version and --help exit with 0 and print to standard output", async () => {
  const { version } = JSON.parse(textOf(new URL("../../../package.json", import.meta.url).pathname)) as {
    version: string;
  };
  expect(await runCommand("--version")).toEqual({ code: 0, out: `${version}\n`, err: "" });
  const help = await runInProcess("--help");
  expect(help).toMatchObject({ code: 0, err: "" });
  for (const command of ["run", "demo", "simulate", "check", "healthcheck"])
    expect(help.out).toContain(`  ${command} `);
});

describe("check", () => {
  test("exits with 0 for a valid configuration, with warnings on standard error", async () => {
    const file = createTempFolder().write("proxywarden.yaml", VALID);
    const { code, out, err } = await runInProcess("check", "--config", file);
    expect({ code, out }).toEqual({
      code: 0,
      out: `${file}: valid\nenforces nothing because\n  no policy is in force: the key policies is empty\n`,
    });
    expect(err).toMatch(new RegExp(`^warning: ${file}:3:\\d+: service.api_key: .* in plain text`));
  });

  test("exits with 1 and lists every error with file, line and column; run fails with the same errors", async () => {
    const file = createTempFolder().write("proxywarden.yaml", THREE_ERRORS);
    const [checked, run] = await Promise.all([
      runInProcess("check", "--config", file),
      runInProcess("run", "--config", file),
    ]);
    expect(checked.code).toBe(1);
    expect(run.code).toBe(1);
    expect(run.out).toBe("");
    const lines = checked.err.trimEnd().split("\n");
    expect(lines).toEqual([
      `${file}:4:3: service.usage_scael: unknown key; did you mean "usage_scale"?`,
      expect.stringMatching(/:7:12: collect\.nodes\.every: found "sixty"; a duration is .* such as 30s/),
      expect.stringMatching(/:9:12: limits\.reserve: found "120%"; must be a percentage from 0% to 90%/),
    ]);
    expect(run.err.trimEnd().split("\n")).toEqual(lines.map((line) => `proxywarden: ${line}`));
  });

  test("prints the same with --output json", async () => {
    const folder = createTempFolder();
    const [bad, good] = await Promise.all([
      runInProcess("check", "--output", "json", "--config", folder.write("bad.yaml", THREE_ERRORS)),
      runInProcess("check", "--output", "json", "--config", folder.write("good.yaml", VALID)),
    ]);
    expect(bad).toMatchObject({ code: 1, err: "" });
    expect(JSON.parse(bad.out)).toMatchObject({ file: folder.pathOf("bad.yaml"), valid: false, warnings: [] });
    expect(Object.keys(JSON.parse(bad.out)).toSorted()).toEqual(Object.keys(JSON.parse(good.out)).toSorted());
    expect((JSON.parse(bad.out) as { errors: object[] }).errors).toContainEqual(
      expect.objectContaining({ line: 7, column: 12, path: "collect.nodes.every", found: '"sixty"' }),
    );
    expect(good).toMatchObject({ code: 0, err: "" });
    expect(JSON.parse(good.out)).toMatchObject({ valid: true, errors: [], warnings: [{ line: 3 }] });
  });

  test("exits with 1 if the file, or one that it names, can't be read", async () => {
    const folder = createTempFolder();
    const missing = await runInProcess("check", "--config", folder.pathOf("none.yaml"));
    expect(missing.code).toBe(1);
    expect(missing.err).toContain(`can't read ${folder.pathOf("none.yaml")}`);
    const keyless = folder.write(
      "keyless.yaml",
      configText("https://proxy.internal", { service: { api_key_file: "key" } }),
    );
    const { code, err } = await runInProcess("check", "--config", keyless);
    expect(code).toBe(1);
    expect(err).toMatch(/service\.api_key_file: .*ENOENT/);
  });
});

describe("demo", () => {
  test("ends after --for with a report", async () => {
    const { code, out, err } = await runInProcess(
      "demo",
      "--nodes",
      "5",
      "--sessions",
      "5",
      "--port",
      "0",
      "--for",
      "1s",
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/ 0 {2}answered 429\n.*\nage of the data, median and maximum\n/s);
  });

  test("reports calls by endpoint, no 429 and ages when it is stopped", async () => {
    const demo = startCommand("demo", "--nodes", "30", "--sessions", "60", "--speed", "60", "--port", "0");
    const [, url] = await waitUntil("it prints its address", () => /metrics +(http:\S+)/.exec(demo.out()));
    await waitUntil("most details are exported", async () => {
      const page = parseMetricsPage(await (await fetch(url!)).text());
      return page.select("proxynet_node_cpu_usage_ratio").length > 20;
    });
    // Programs such as systemd-tmpfiles remove old temporary files.
    const [, folder] = /--token-file (\S+)\/admin_token/.exec(demo.out())!;
    rmSync(folder!, { recursive: true });
    demo.kill("SIGINT");
    const { code, out, err } = await demo.ended;
    // On a slow machine, the log may say that data is old.
    expect(err).not.toContain("proxywarden: ");
    expect(code).toBe(0);
    expect(out).toMatch(/[1-9]\d* {2}GET \/v1\/nodes {2}200/);
    expect(out).toMatch(/ 0 {2}answered 429/);
    expect(out).toMatch(/nodes +\d[\dms.]* {2}\d[\dms.]*\n/);
  });

  test("exits with 1 and names the address if it can't listen", async () => {
    const { url } = await startNetwork();
    const { port } = new URL(url);
    const { code, err } = await runInProcess("demo", "--nodes", "5", "--sessions", "5", "--port", port, "--for", "1s");
    expect(code).toBe(1);
    expect(err).toMatch(new RegExp(`^proxywarden: --port: .*127\\.0\\.0\\.1:${port}.*lsof -i :${port}`));
  });
});

test("a closed pipe, as with head, is no error: the exit code is 0 and no stack trace is printed", async () => {
  const line = `${process.execPath} src/main.ts demo --nodes 5 --sessions 5 --port 0 --for 1s | head -n 1; exit $PIPESTATUS`;
  const { code, out, err } = await startProcess("bash", ["-c", line], "", COMPILE_CACHE).ended;
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out.trimEnd()).toMatch(/^proxywarden monitors .*$/);
});

test("a report that can't be written is an error: the exit code is 1", async () => {
  const line = `${process.execPath} src/main.ts --help > /dev/full`;
  expect(await startProcess("bash", ["-c", line], "", COMPILE_CACHE).ended).toEqual({
    code: 1,
    out: "",
    err: "proxywarden: can't write standard output: ENOSPC: no space left on device, write\n",
  });
});

describe("simulate", () => {
  test("serves any client with a key, and exits with 0 on SIGTERM", async () => {
    const simulation = startCommand("simulate", "--nodes", "7", "--sessions", "9", "--port", "0");
    const [, url] = await waitUntil("it prints its address", () => /(http:\S+)/.exec(simulation.out()));
    const answer = await fetch(`${url}?limit=5`, { headers: { authorization: `Bearer ${SIMULATION_KEY}` } });
    expect(await answer.json()).toMatchObject({ pagination: { page: 1, limit: 5, total: 7 } });
    expect((await fetch(url!)).status).toBe(401);
    simulation.kill("SIGTERM");
    expect(await simulation.ended).toMatchObject({ code: 0, err: "" });
  });

  test("exits with 1 for an invalid scenario and for an address in use", async () => {
    const { url } = await startNetwork();
    const file = createTempFolder().write("scenario.yaml", "nodes: few\n");
    const [invalid, inUse] = await Promise.all([
      runInProcess("simulate", "--scenario", file, "--port", "0"),
      runInProcess("simulate", "--nodes", "1", "--port", new URL(url).port),
    ]);
    expect(invalid.code).toBe(1);
    expect(invalid.err).toMatch(new RegExp(`${file}:1:8: nodes: found "few"; must be a whole number`));
    expect(inUse.code).toBe(1);
    expect(inUse.err).toMatch(/can't listen on 127\.0\.0\.1:\d+: .*EADDRINUSE.*lsof -i :\d+.* --port/);
  });
});

test("healthcheck exits with 0 if the daemon is healthy, and with 1 if nothing or another server answers", async () => {
  const { clock, url } = await startNetwork();
  const { app } = await startTestDaemon(clock, configText(url));
  const [healthy, other, unreachable] = await Promise.all([
    runInProcess("healthcheck", "--url", app.url()),
    runInProcess("healthcheck", "--url", url),
    runInProcess("healthcheck", "--url", "http://127.0.0.1:1"),
  ]);
  expect(healthy).toEqual({ code: 0, out: "healthy\n", err: "" });
  expect(other).toMatchObject({ code: 1, out: "", err: expect.stringMatching(/not healthy: it answered 4\d\d/) });
  expect(unreachable).toMatchObject({ code: 1, out: "", err: expect.stringMatching(/not healthy: .*ECONNREFUSED/) });
});

test("healthcheck --config finds the daemon by a file that became invalid", async () => {
  const { clock, url } = await startNetwork();
  const { app } = await startTestDaemon(clock, configText(url));
  const folder = createTempFolder();
  const listen = `127.0.0.1:${new URL(app.url()).port}`;
  const check = (name: string, text: string) =>
    runInProcess("healthcheck", "--config", folder.write(`${name}.yaml`, text));
  folder.write("plain.yml", "tls_server_config: { cert_file: , min_vresion: TLS13 }\n");
  const [invalid, plain] = await Promise.all([
    check("invalid", `${THREE_ERRORS}web: { listen: "${listen}" }\npolicies: [missing.yaml]\nstate: "\${UNSET}"\n`),
    check("plain", `web: { listen: "${listen}", web_config_file: plain.yml, operators: 17 }\n`),
  ]);
  expect(invalid).toEqual({ code: 0, out: "healthy\n", err: "" });
  expect(plain).toEqual({ code: 0, out: "healthy\n", err: "" });
});

test.each([
  ["no YAML", "web: [\n", /^config\.yaml:2:1: not valid YAML: /],
  ["no mapping", "web: hello\n", /^config\.yaml:1:6: web: found "hello"; must be a mapping \(keys: listen, /],
  ["a wrong address", "web:\n  listen: 17\n", /^config\.yaml:2:11: web\.listen: found 17; must be a host and a port /],
  ["an unset variable", `web: { listen: "\${UNSET}" }\n`, /^config\.yaml:1:16: web\.listen: .* UNSET must be set$/m],
  [
    "a missing file",
    "web: { web_config_file: missing.yml }\n",
    /^config\.yaml:1:25: web\.web_config_file: found "missing\.yml"; must be a file that can be read: .*ENOENT\)$/m,
  ],
  [
    "a wrong web configuration",
    "web: { web_config_file: wrong.yml }\n",
    /^wrong\.yml:1:20: tls_server_config: found a list; must be a mapping /,
  ],
])("healthcheck --config says what keeps it from finding the daemon: %s", async (_, text, problem) => {
  const folder = createTempFolder();
  folder.write("wrong.yml", "tls_server_config: [cert]\n");
  const { code, err } = await runInProcess("healthcheck", "--config", folder.write("config.yaml", text));
  expect(code).toBe(1);
  expect(err.replaceAll(`${folder.path}/`, "").replaceAll("proxywarden: ", "")).toMatch(problem);
  expect(err).toMatch(
    /^proxywarden: correct it; if the daemon listens elsewhere, pass its address as --url instead of --config$/m,
  );
});

test("healthcheck --config names only mistakes in the section web if the daemon does not answer", async () => {
  const web = "web: { listen: 127.0.0.1:1, lisen: 127.0.0.1:2 }\n";
  const file = createTempFolder().write("config.yaml", `${web}service: { api_key: "\${UNSET}" }\n`);
  const { code, err } = await runInProcess("healthcheck", "--config", file);
  expect(code).toBe(1);
  expect(err.split("\n")).toEqual([
    expect.stringMatching(/^proxywarden: http:\/\/127\.0\.0\.1:1 is not healthy: .*ECONNREFUSED/),
    `proxywarden: ${file}:1:29: web.lisen: unknown key; did you mean "listen"?`,
    "",
  ]);
});

test("run exits with 1 if it can't listen, and leaves its state folder usable", async () => {
  const network = await startNetwork();
  const folder = createTempFolder();
  const configListeningOn = (listen: string) =>
    folder.write(
      "proxywarden.yaml",
      configText(network.url, { state: { path: folder.pathOf("state") }, web: { listen } }),
    );
  const { port } = new URL(network.url);
  const refused = await runInProcess("run", "--config", configListeningOn(`127.0.0.1:${port}`));
  expect(refused.code).toBe(1);
  expect(refused.err).toMatch(new RegExp(`web\\.listen: .*127\\.0\\.0\\.1:${port}.* free address`));
  const daemon = startCommand("run", "--config", configListeningOn("127.0.0.1:0"));
  await waitForStderr(daemon, /"msg":"daemon started"/);
  daemon.kill("SIGINT");
  expect(await daemon.ended).toMatchObject({ code: 0, out: "" });
});

function textOf(path: string): string {
  return orThrow(readTextFile(path));
}
