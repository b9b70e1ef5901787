import { setImmediate as turn } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { readConfigFile } from "../../../src/cli/config/config-loading.ts";
import { readConfigInThread } from "../../../src/cli/config/config-thread.ts";
import { readWebFile } from "../../../src/config/web-file.ts";
import { readTextFile } from "../../../src/platform/text-file.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";

let folder: TempFolder;

beforeEach(() => {
  folder = createTempFolder();
});

const env = { HOST: "proxy.internal" };
const never = new AbortController().signal;

const CONFIG = `
service: { base_url: "https://\${HOST}", api_key: clear, usage_scale: ratio }
web: { web_config_file: web.yml }
policies: [offline.yaml]
safety: { mode: enforce }
receivers: [{ name: oncall, webhook_url_file: hook }]
`;

const POLICY = `
policies:
  - name: offline
    mode: enforce
    when: node.status == "offline"
    for: 15m
    steps: [{ action: reboot }]
`;

function written(config = CONFIG): string {
  folder.write("web.yml", "rate_limit: { interval: 1s, burst: 7 }\n");
  folder.write("hook", "https://hooks.example.net/x");
  folder.write("offline.yaml", POLICY);
  return folder.write("proxywarden.yaml", config);
}

test("a configuration is the same when it is read in a thread, and its web configuration can be read again", async () => {
  const file = written();
  const here = readConfigFile(file, env);
  const there = await readConfigInThread(file, env, never);
  if (!here.ok || !there.ok) throw new Error(JSON.stringify([here, there]));
  expect(there.value).toEqual(here.value);
  expect(there.value.warnings.length).toBeGreaterThan(0);
  expect(there.value.webFile?.config).toMatchObject({ rate_limit: { burst: 7 } });
  const webFile = there.value.webFile!;
  folder.write("web.yml", "rate_limit: { interval: 1s, burst: 8 }\n");
  const again = readWebFile(webFile.file, webFile.env, readTextFile);
  expect(again).toMatchObject({ ok: true, value: { config: { rate_limit: { burst: 8 } } } });
});

test("errors are the same as without a thread", async () => {
  const file = written(`${CONFIG}log: { level: inf, levle: info }\n`);
  const here = readConfigFile(file, env);
  expect(here.ok).toBe(false);
  expect(await readConfigInThread(file, env, never)).toEqual(here);
});

test("reading the largest accepted file does not block the event loop", async () => {
  const file = written(`a: [${"*a,".repeat(40_000)}]`);
  let isReading = true;
  const reading = readConfigInThread(file, env, never).finally(() => {
    isReading = false;
  });
  let turns = 0;
  while (isReading) {
    await turn();
    turns += 1;
  }
  expect(await reading).toMatchObject({ ok: false });
  // Read in this thread, it would block all but a few turns of the event loop.
  expect(turns).toBeGreaterThan(50);
});

test("reading ends when the daemon stops", async () => {
  const stop = new AbortController();
  const reading = readConfigInThread(written(), env, stop.signal);
  stop.abort();
  expect(await reading).toEqual({ ok: false, error: ["the daemon is stopping"] });
  expect(await readConfigInThread(written(), env, stop.signal)).toEqual(await reading);
});
