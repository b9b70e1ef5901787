import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { errorMessage } from "../base/result.ts";

const block = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Returns why `pem` is not a valid list of CA certificates, or null if it is valid. */
export function caCertificateProblem(pem: string): string | null {
  const certificates = pem.match(block) ?? [];
  if (certificates.length === 0)
    return "holds no certificate; it should hold one or more in PEM, each from BEGIN to END";
  const broken = certificates.findIndex((certificate) => !isReadable(certificate));
  return broken < 0 ? null : `holds a certificate that can't be read, number ${broken + 1} of ${certificates.length}`;
}

function isReadable(certificate: string): boolean {
  try {
    new X509Certificate(certificate);
    return true;
  } catch {
    return false;
  }
}

/** Returns why a client certificate and its key can't be used, or null if they can. */
export function clientCertificateProblem(cert: string, key: string): string | null {
  try {
    createSecureContext({ cert, key });
    return null;
  } catch (error) {
    return errorMessage(error);
  }
}
