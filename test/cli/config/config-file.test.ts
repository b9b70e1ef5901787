import { execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { beforeEach, expect, test } from "vitest";
import { readConfigFile } from "../../../src/cli/config/config-loading.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";

let folder: TempFolder;

beforeEach(() => {
  folder = createTempFolder();
});

/** Returns the errors of a configuration, without the path of its folder. */
function errors(): readonly string[] {
  const read = readConfigFile(folder.pathOf("proxywarden.yaml"), {});
  return read.ok ? [] : read.error.map((line) => line.replaceAll(`${folder.path}/`, ""));
}

const SERVICE = "service: { base_url: 'https://proxy.internal', api_key_file: key, usage_scale: ratio }\n";

test("the error about a missing configuration names --config", () => {
  expect(errors()).toEqual([
    "can't read proxywarden.yaml: there is no such file (ENOENT); set the configuration file with --config",
  ]);
});

test("a loop of symbolic links is reported", () => {
  symlinkSync("proxywarden.yaml", folder.pathOf("proxywarden.yaml"));
  expect(errors()).toEqual(["can't read proxywarden.yaml: a loop of symbolic links (ELOOP)"]);
});

test("special files that a configuration names are rejected", () => {
  folder.write("proxywarden.yaml", `${SERVICE}policies: ['*.policy']\nweb: { web_config_file: web.yml }\n`);
  execFileSync("mkfifo", [folder.pathOf("a.policy")]);
  symlinkSync("b.policy", folder.pathOf("b.policy"));
  writeFileSync(folder.pathOf("c.policy"), Uint8Array.of(0xff, 0xfe, 0x61, 0x00));
  folder.write("d.policy", "x".repeat(1_048_577));
  symlinkSync("web.yml", folder.pathOf("web.yml"));
  symlinkSync("/dev/zero", folder.pathOf("key"));
  const device = "must be a file that can be read: can't read key: it is a device; it must be a regular file";
  const loop = "must be a file that can be read: can't read web.yml: a loop of symbolic links (ELOOP)";
  expect(errors()).toEqual([
    `proxywarden.yaml:1:62: service.api_key_file: found "key"; ${device}`,
    `proxywarden.yaml:3:25: web.web_config_file: found "web.yml"; ${loop}`,
    "a.policy:1:1: can't read a.policy: it is a pipe; it must be a regular file",
    "b.policy:1:1: can't read b.policy: a loop of symbolic links (ELOOP)",
    "c.policy:1:1: can't read c.policy: it is encoded as UTF-16; it must be UTF-8",
    "d.policy:1:1: can't read d.policy: it is too large: it has 1048577 bytes, and may have at most 1048576",
  ]);
});

test("an example that was not filled in is rejected, also by a reload", () => {
  folder.write("key", "sesame");
  folder.write("proxywarden.yaml", SERVICE.replace("proxy.internal", "proxy.example.net"));
  expect(errors()).toEqual([
    'proxywarden.yaml:1:22: service.base_url: found "https://proxy.example.net", which is the placeholder of the example; must be the URL of your service',
  ]);
});

test("a byte order mark is removed", () => {
  folder.write("key", "sesame");
  folder.write("proxywarden.yaml", `\uFEFF${SERVICE}`);
  expect(errors()).toEqual([]);
});
