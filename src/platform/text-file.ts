import { isUtf8 } from "node:buffer";
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { fail, ok, type Result } from "../base/result.ts";

/** The content of a file, and its status when it was read. */
interface TextFile {
  /** The text, with its byte order mark if it has one. */
  readonly text: string;
  readonly stats: BigIntStats;
}

/** Maximum size of a text file. Configuration files and CA bundles are far smaller. */
const TEXT_FILE_BYTES_MAX = 1_048_576;

/** Stands for standard input or output where a command takes the path of a file. */
export const STANDARD_STREAM = "-";

/** Why a file that does not exist can't be read. */
export const NO_SUCH_FILE = "there is no such file (ENOENT)";

/** Reads a text file of at most 1 MiB, without its byte order mark. The error names the file and the reason. */
export function readTextFile(path: string): Result<string, string> {
  const read = readRegularFile(path, TEXT_FILE_BYTES_MAX);
  return read.ok ? ok(withoutMark(read.value.text)) : fail(`can't read ${path}: ${read.error}`);
}

/** Like {@link readTextFile}, but {@link STANDARD_STREAM} is standard input, which can be read only once. */
export async function readTextInput(path: string): Promise<Result<string, string>> {
  if (path !== STANDARD_STREAM) return readTextFile(path);
  const read = await readTextStream(process.stdin, TEXT_FILE_BYTES_MAX);
  return read.ok ? ok(withoutMark(read.value)) : fail(`can't read standard input: ${read.error}`);
}

const withoutMark = (text: string): string => text.replace(/^\uFEFF/, "");

/**
 * Reads a regular file of at most `bytesMax` bytes as UTF-8. It never waits for the other end of a pipe and never reads
 * more than the limit, even from a file that grows. The error is the reason, without the path.
 */
export function readRegularFile(path: string, bytesMax: number): Result<TextFile, string> {
  try {
    // Without O_NONBLOCK, opening a named pipe would block the process until there is a writer.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stats = fstatSync(file, { bigint: true });
      const kind = kindOf(stats);
      if (kind !== null) return fail(`it is ${kind}; it must be a regular file`);
      if (stats.size > bytesMax) return fail(tooLargeMessage(`${stats.size} bytes`, bytesMax));
      const bytes = readAll(file, bytesMax);
      if (bytes === null) return fail(tooLargeMessage(`more than ${bytesMax} bytes`, bytesMax));
      const text = decode(bytes);
      return text.ok ? ok({ text: text.value, stats }) : text;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return fail(fileErrorMessage(error as NodeJS.ErrnoException));
  }
}

/**
 * Reads a stream, such as standard input, to its end, as UTF-8 of at most `bytesMax` bytes. The error is the reason.
 */
export async function readTextStream(
  stream: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<Result<string, string>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of stream) {
      length += chunk.byteLength;
      if (length > bytesMax) return fail(tooLargeMessage(`more than ${bytesMax} bytes`, bytesMax));
      chunks.push(chunk);
    }
  } catch (error) {
    return fail(fileErrorMessage(error as NodeJS.ErrnoException));
  }
  return decode(Buffer.concat(chunks, length));
}

function kindOf(stats: BigIntStats): string | null {
  if (stats.isFile()) return null;
  if (stats.isDirectory()) return "a directory";
  if (stats.isFIFO()) return "a pipe";
  return stats.isSocket() ? "a socket" : "a device";
}

const tooLargeMessage = (size: string, bytesMax: number) =>
  `it is too large: it has ${size}, and may have at most ${bytesMax}`;

/** Reads a whole file. Returns null if it has more than `bytesMax` bytes. */
function readAll(file: number, bytesMax: number): Buffer | null {
  const buffer = Buffer.alloc(bytesMax + 1);
  let length = 0;
  while (length <= bytesMax) {
    const read = readSync(file, buffer, length, buffer.length - length, null);
    if (read === 0) return buffer.subarray(0, length);
    length += read;
  }
  return null;
}

/** Decodes UTF-8. The error names the first byte that is invalid. */
function decode(bytes: Buffer): Result<string, string> {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    return fail("it is encoded as UTF-16; it must be UTF-8");
  }
  if (isUtf8(bytes)) return ok(bytes.toString("utf8"));
  // Decoding replaces only invalid bytes, each time by U+FFFD, whose first bytes may be equal to those that it replaces.
  const decoded = Buffer.from(bytes.toString("utf8"));
  const differsAt = bytes.findIndex((byte, index) => byte !== decoded[index]);
  const offset = decoded.lastIndexOf("\ufffd", differsAt === -1 ? bytes.length : differsAt);
  const lines = bytes.subarray(0, offset).toString("utf8").split("\n");
  const byte = `0x${bytes[offset]?.toString(16).padStart(2, "0")}`;
  return fail(`it is not UTF-8: line ${lines.length}, column ${lines.at(-1)!.length + 1} has the byte ${byte}`);
}

/** Messages for errors of the system, by code. */
const FILE_ERRORS = new Map([
  ["ENOENT", NO_SUCH_FILE],
  ["ELOOP", "a loop of symbolic links (ELOOP)"],
  ["EACCES", "permission denied (EACCES)"],
  ["EPERM", "permission denied (EPERM)"],
  ["ENOTDIR", "a part of its path is not a directory (ENOTDIR)"],
  ["ENXIO", "it is a socket or a device; it must be a regular file"],
  ["EMFILE", "too many files are open (EMFILE)"],
  ["ENFILE", "too many files are open (ENFILE)"],
]);

/** Returns why a file can't be opened or read. */
export const fileErrorMessage = ({ code = "", message }: Pick<NodeJS.ErrnoException, "code" | "message">): string =>
  FILE_ERRORS.get(code) ?? message;
