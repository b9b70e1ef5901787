import { expect, test } from "vitest";
import { parseConfig } from "../../src/cli/config/config-loading.ts";
import { openConfigResources } from "../../src/daemon/config-resources.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { configText } from "../integration/simulated-network.ts";
import { createAuthority } from "../web/http/tls/certificate-authority.ts";

test("unusable certificates are rejected with the configuration, by the key that names them", () => {
  const folder = createTempFolder();
  const authority = createAuthority("ours");
  const [one, other] = [authority.issue("DNS:a.test", "clientAuth"), authority.issue("DNS:b.test", "clientAuth")];
  const file = (name: string, text: string) => folder.write(name, text);
  const [cert, key] = [file("one.crt", one.cert), file("other.key", other.key)];
  const problemsOf = (service: object): readonly string[] => {
    const parsed = parseConfig("proxywarden.yaml", configText("https://service.test", { service: { ...service } }), {});
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.error));
    const deps = { clock: systemClock, version: "0" };
    const access = openConfigResources(parsed.value, deps);
    return access.ok ? [] : access.error.map(({ path, message }) => `${path}: ${message}`);
  };
  expect(problemsOf({ tls_config: { cert_file: cert, key_file: file("one.key", one.key) } })).toEqual([]);
  expect(problemsOf({ tls_config: { cert_file: cert, key_file: key } })).toEqual([
    expect.stringMatching(/^service\.tls_config: cert_file and key_file can't be used: .*mismatch/),
  ]);
  for (const [place, service] of [
    ["service.ca_file", { ca_file: key }],
    ["service.tls_config.ca_file", { tls_config: { ca_file: key } }],
  ] as const) {
    expect(problemsOf(service)).toEqual([
      `${place}: ${key} holds no certificate; it should hold one or more in PEM, each from BEGIN to END`,
    ]);
  }
});
