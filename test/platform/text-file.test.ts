import { execFileSync } from "node:child_process";
import { appendFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { beforeEach, describe, expect, test } from "vitest";
import { fileErrorMessage, readRegularFile, readTextStream } from "../../src/platform/text-file.ts";
import { createTempFolder } from "../harness/temp-folder.ts";

const BYTES_MAX = 1_000;

let folder: string;

beforeEach(() => {
  folder = createTempFolder().path;
});

const at = (name: string) => join(folder, name);

function written(content: string | Uint8Array): ReturnType<typeof readRegularFile> {
  writeFileSync(at("file"), content);
  return readRegularFile(at("file"), BYTES_MAX);
}

const reason = (path: string) => readRegularFile(path, BYTES_MAX);

test("reads UTF-8 as it is, up to the limit", () => {
  const text = `\uFEFF${"é".repeat(498)}x`;
  expect(written(text)).toMatchObject({ ok: true, value: { text } });
  expect(written("")).toMatchObject({ ok: true, value: { text: "" } });
});

test("reads a stream to its end, up to the limit", async () => {
  const read = (...chunks: readonly Uint8Array[]) => readTextStream(Readable.from(chunks), BYTES_MAX);
  const [first, second] = [Buffer.from("é".repeat(500)).subarray(0, 501), Buffer.from("é".repeat(500)).subarray(501)];
  expect(await read(first, second)).toEqual({ ok: true, value: "é".repeat(500) });
  expect(await read(first, second, Buffer.from("x"))).toMatchObject({
    ok: false,
    error: expect.stringContaining("more than 1000 bytes"),
  });
  expect(await read(Uint8Array.of(0x61, 0xff))).toMatchObject({
    ok: false,
    error: expect.stringContaining("not UTF-8"),
  });
});

test("follows symbolic links", () => {
  writeFileSync(at("file"), "x");
  symlinkSync("file", at("link"));
  expect(reason(at("link"))).toMatchObject({ ok: true, value: { text: "x" } });
});

describe("explains why it can't be read:", () => {
  test("one byte over the limit", () => {
    expect(written("x".repeat(1_001))).toEqual({
      ok: false,
      error: "it is too large: it has 1001 bytes, and may have at most 1000",
    });
  });

  test.each<readonly [bytes: readonly number[], place: string]>([
    [[0x61, 0xff, 0x62], "line 1, column 2 has the byte 0xff"],
    [[0x61, 0x0a, 0xc3, 0xa9, 0xe9], "line 2, column 2 has the byte 0xe9"],
    [[0xef, 0xbf, 0xbd, 0xc0, 0x80], "line 1, column 2 has the byte 0xc0"],
    [[0xf0, 0x9f, 0x98], "line 1, column 1 has the byte 0xf0"],
    [[0xed, 0xa0, 0x80, 0x61, 0x61, 0x61], "line 1, column 1 has the byte 0xed"],
    [[0x6e, 0x61, 0xef, 0x76, 0x65], "line 1, column 3 has the byte 0xef"],
    [[0x61, 0xef, 0xbf], "line 1, column 2 has the byte 0xef"],
    [[0xef, 0xbf, 0xbd, 0xef, 0xbf, 0x61], "line 1, column 2 has the byte 0xef"],
  ])("bytes %j that are not UTF-8", (bytes, place) => {
    expect(written(Uint8Array.from(bytes))).toEqual({ ok: false, error: `it is not UTF-8: ${place}` });
  });

  test.each(["utf16le", "utf16be"])("%s", (encoding) => {
    const bytes = Buffer.from("\uFEFFlog: {}", "utf16le");
    const error = "it is encoded as UTF-16; it must be UTF-8";
    expect(written(encoding === "utf16be" ? bytes.swap16() : bytes)).toEqual({ ok: false, error });
  });

  test("a loop of symbolic links", () => {
    symlinkSync("two", at("one"));
    symlinkSync("one", at("two"));
    expect(reason(at("one"))).toEqual({ ok: false, error: "a loop of symbolic links (ELOOP)" });
  });

  test("nothing, and a link to nothing", () => {
    symlinkSync("none", at("link"));
    expect(reason(at("none"))).toEqual({ ok: false, error: "there is no such file (ENOENT)" });
    expect(reason(at("link"))).toEqual({ ok: false, error: "there is no such file (ENOENT)" });
  });

  test("a file in the place of a directory", () => {
    writeFileSync(at("file"), "x");
    expect(reason(at("file/x"))).toEqual({
      ok: false,
      error: "a part of its path is not a directory (ENOTDIR)",
    });
  });

  test("a directory", () => {
    expect(reason(folder)).toEqual({
      ok: false,
      error: "it is a directory; it must be a regular file",
    });
  });

  test("a named pipe that has no writer", () => {
    execFileSync("mkfifo", [at("pipe")]);
    expect(reason(at("pipe"))).toEqual({
      ok: false,
      error: "it is a pipe; it must be a regular file",
    });
  });

  test("a socket", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(at("socket"), resolve));
    expect(reason(at("socket"))).toMatchObject({ ok: false, error: expect.stringContaining("must be a regular file") });
    await new Promise((resolve) => server.close(resolve));
  });

  test.each(["/dev/zero", "/dev/null"])("the device %s", (device) => {
    expect(reason(device)).toEqual({ ok: false, error: "it is a device; it must be a regular file" });
  });

  test.each([
    ["EACCES", "permission denied (EACCES)"],
    ["EMFILE", "too many files are open (EMFILE)"],
    ["EIO", "EIO: i/o error, read"],
  ])("%s", (code, expected) => {
    expect(fileErrorMessage({ code, message: "EIO: i/o error, read" })).toBe(expected);
  });

  // The size of what /proc shows is 0 until it is read, as that of a file that grows is less than what is read.
  test("a file that has more than its size says", () => {
    expect(reason("/proc/cpuinfo")).toEqual({
      ok: false,
      error: "it is too large: it has more than 1000 bytes, and may have at most 1000",
    });
  });
});

test("reads all of a file that has grown since it was read before", () => {
  writeFileSync(at("file"), "one");
  expect(reason(at("file"))).toMatchObject({ value: { text: "one" } });
  appendFileSync(at("file"), " two");
  expect(reason(at("file"))).toMatchObject({ value: { text: "one two" } });
});
