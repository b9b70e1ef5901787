import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A certificate and its key, in PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority. */
export interface CertificateAuthority extends Identity {
  /** `names`: subject alternative names, such as `DNS:a.test`; `use`: what the certificate is for. */
  issue(names: string, use?: "serverAuth" | "clientAuth"): Identity;
}

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** Runs openssl in a temporary folder. */
function runOpenssl(
  name: string,
  options: (folder: string) => readonly string[],
  files: Readonly<Record<string, string>> = {},
) {
  const folder = mkdtempSync(join(tmpdir(), "proxywarden-"));
  try {
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
    const out = ["-keyout", join(folder, "key"), "-out", join(folder, "cert")];
    execFileSync(
      "openssl",
      ["req", "-x509", ...newKey, "-days", "2", "-subj", `/CN=${name}`, ...out, ...options(folder)],
      {
        stdio: "pipe",
      },
    );
    return { cert: readFileSync(join(folder, "cert"), "utf8"), key: readFileSync(join(folder, "key"), "utf8") };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Creates a certificate that is its own authority, with subject alternative names such as `DNS:a.test`. */
export const createSelfSigned = (names: string): Identity =>
  runOpenssl("self-signed", () => ["-addext", `subjectAltName=${names}`]);

/** Creates an authority with a name. Its certificates are valid for two days. */
export function createAuthority(name: string): CertificateAuthority {
  const own = runOpenssl(name, () => ["-addext", "keyUsage=critical,keyCertSign"]);
  return {
    ...own,
    issue: (names, use = "serverAuth") =>
      runOpenssl(
        `${name} ${use}`,
        (folder) => [
          ...["-CA", join(folder, "ca.crt"), "-CAkey", join(folder, "ca.key")],
          ...["-addext", `subjectAltName=${names}`, "-addext", `extendedKeyUsage=${use}`],
          ...["-addext", "basicConstraints=critical,CA:FALSE"],
        ],
        { "ca.crt": own.cert, "ca.key": own.key },
      ),
  };
}
