import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { readJson } from "../../src/api-client/json-body.ts";

const JSON_TYPE = { "content-type": "application/json" };

const problemOf = (body: string | Uint8Array, headers: Record<string, string> = JSON_TYPE): string => {
  const read = readJson({ status: 200, headers, body: Buffer.from(body) });
  return read.ok ? "none" : read.error;
};

test("parses a JSON body", () => {
  expect(readJson({ status: 200, headers: {}, body: Buffer.from('{"a":1}') })).toEqual({ ok: true, value: { a: 1 } });
});

test("reports where truncated JSON is cut off", () => {
  const whole = '{"data":[{"id":"node_1","uptime":1.5,"up":true}],"total":1}';
  for (let length = 1; length < whole.length; length++) {
    const part = whole.slice(0, length);
    expect(problemOf(part)).toBe(
      `the JSON is cut off after ${length} characters; it ends with ${JSON.stringify(part.slice(-40))}`,
    );
  }
});

test.each([
  ['{"a":1}}', "the JSON is broken: Unexpected non-whitespace character after JSON at position 7 (line 1 column 8)"],
  ['{"a":x}', 'the JSON is broken: Unexpected token \'x\', "{"a":x}" is not valid JSON'],
  [" \n", "expected JSON, got an empty body"],
  ["Bad Gateway", 'expected JSON, got application/json beginning with "Bad Gateway"'],
])("%o is reported with its problem", (body, problem) => {
  expect(problemOf(body)).toBe(problem);
});

test("reports a compressed body that can't be read", () => {
  const zipped = gzipSync("{}");
  expect(problemOf(zipped, { "content-encoding": "BR" })).toBe(
    'the body is compressed with "br", which was not requested',
  );
  expect(problemOf(zipped, {})).toBe("the body is compressed with gzip, but has no Content-Encoding");
  expect(problemOf("{", { "content-encoding": "gzip" })).toBe(
    "the body is not gzip although its Content-Encoding says so",
  );
  expect(problemOf("{", { "content-encoding": "identity" })).toContain("cut off");
});

test.each(["{},", "1,", "["])("a body that repeats %s a million times is rejected before it is parsed", (unit) => {
  const body = Buffer.from(`[${unit.repeat(1_000_001)}`);
  expect(readJson({ status: 200, headers: {}, body })).toEqual({
    ok: false,
    error: "the JSON has more than 1000000 values",
  });
});
