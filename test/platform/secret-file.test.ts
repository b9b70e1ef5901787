import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { fileSecret, inlineSecret, pemFile } from "../../src/platform/secret-file.ts";
import { orThrow } from "../harness/or-throw.ts";
import { createTempFolder } from "../harness/temp-folder.ts";

let folder: string;
let now = 0;
const clock = { monotonic: () => now };

beforeEach(() => {
  folder = createTempFolder().path;
});

/** A secret read from a new file with this content. */
function secretOf(content: string | Uint8Array) {
  const path = join(folder, "key");
  writeFileSync(path, content);
  const secret = orThrow(fileSecret(path, clock));
  return { path, secret };
}

test("a PEM file without PEM is an error that does not call it a secret", () => {
  const path = join(folder, "ca.pem");
  writeFileSync(path, "hello\n");
  const error = `PEM file ${path} holds no PEM; it should begin with a line such as -----BEGIN CERTIFICATE-----`;
  expect(pemFile(path, clock)).toEqual({ ok: false, error });
});

describe("a secret file", () => {
  test.each([
    ["key-1", "key-1"],
    ["key-1\n", "key-1"],
    ["key-1\r\n", "key-1"],
    ["two words\n", "two words"],
  ])("that holds %j is the secret %j", (content, value) => {
    expect(secretOf(content).secret.value()).toBe(value);
  });

  test.each([
    ["", "is empty"],
    ["\n", "is empty"],
    ["  \n", "is empty"],
    ["one\ntwo\n", "more than one line"],
    ["key\n\n", "more than one line"],
    ["key\0", "control character"],
    ["\ufeffkey", "byte order mark"],
    ["x".repeat(20_000), "20000 bytes"],
  ])("that holds %j is an error that names it", (content, problem) => {
    const path = join(folder, "key");
    writeFileSync(path, content);
    const secret = fileSecret(path, clock);
    expect(secret).toMatchObject({ ok: false });
    expect(secret.ok ? "" : secret.error).toContain(path);
    expect(secret.ok ? "" : secret.error).toContain(problem);
  });

  test("that is missing or a folder is an error that names it", () => {
    expect(fileSecret(join(folder, "none"), clock)).toMatchObject({ error: expect.stringContaining("ENOENT") });
    expect(fileSecret(folder, clock)).toMatchObject({
      error: expect.stringContaining("it is a directory; it must be a regular file"),
    });
  });

  test("is read again on refresh, which says whether the value changed", () => {
    const { path, secret } = secretOf("old\n");
    expect(secret.refresh()).toEqual({ ok: true, value: false });
    writeFileSync(path, "new\n");
    expect(secret.refresh()).toEqual({ ok: true, value: true });
    expect(secret.value()).toBe("new");
  });

  test("that becomes unreadable or empty keeps the old value, and refresh says why", () => {
    const { path, secret } = secretOf("old\n");
    writeFileSync(path, "");
    expect(secret.refresh()).toMatchObject({ ok: false, error: expect.stringContaining("is empty") });
    rmSync(path);
    expect(secret.refresh()).toMatchObject({ ok: false, error: expect.stringContaining("ENOENT") });
    now += 1_000;
    expect(secret.value()).toBe("old");
  });

  test("that changed is read again by value, at most once a second", () => {
    const { path, secret } = secretOf("old\n");
    writeFileSync(path, "newer\n");
    now += 999;
    expect(secret.value()).toBe("old");
    now += 1;
    expect(secret.value()).toBe("newer");
    writeFileSync(path, "newest\n");
    expect(secret.value()).toBe("newer");
    now += 1_000;
    expect(secret.value()).toBe("newest");
  });

  test("that was half written is read again a second later", () => {
    const { path, secret } = secretOf("old\n");
    writeFileSync(path, "");
    now += 1_000;
    expect(secret.value()).toBe("old");
    writeFileSync(path, "whole\n");
    now += 1_000;
    expect(secret.value()).toBe("whole");
  });

  test("mounted by Kubernetes is read again when the folder's link changes", () => {
    for (const [version, key] of [
      ["..v1", "first"],
      ["..v2", "other"],
    ] as const) {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, "api_key"), key);
    }
    symlinkSync("..v1", join(folder, "..data"));
    symlinkSync("..data/api_key", join(folder, "api_key"));
    const secret = orThrow(fileSecret(join(folder, "api_key"), clock));
    expect(secret.value()).toBe("first");
    symlinkSync("..v2", join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
    now += 1_000;
    expect(secret.value()).toBe("other");
  });
});

describe("an inline secret", () => {
  test("never changes", () => {
    const secret = inlineSecret("key-1");
    expect(secret.refresh()).toEqual({ ok: true, value: false });
    expect(secret.value()).toBe("key-1");
  });

  test("is never empty", () => {
    expect(() => inlineSecret("")).toThrow("empty");
  });
});
