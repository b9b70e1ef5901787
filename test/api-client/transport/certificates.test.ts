import { rootCertificates } from "node:tls";
import { expect, test } from "vitest";
import { caCertificateProblem } from "../../../src/api-client/certificates.ts";

const [one, other] = rootCertificates as [string, string];

test("accepts one certificate, or several with text in between", () => {
  expect(caCertificateProblem(one)).toBeNull();
  expect(caCertificateProblem(`# the first\n${one}\n# the second\n${other}\n`)).toBeNull();
});

test("rejects a file without a certificate, or with a broken one, whose number it names", () => {
  expect(caCertificateProblem("garbage")).toContain("holds no certificate");
  const broken = other.replace(/\n[A-Za-z0-9+/]{20}/, "\nAAAAAAAAAAAAAAAAAAAA");
  expect(caCertificateProblem(`${one}\n${broken}`)).toBe("holds a certificate that can't be read, number 2 of 2");
});
