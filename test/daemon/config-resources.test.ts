import { expect, test } from "vitest";
import { parseConfig } from "../../src/cli/config/config-loading.ts";
import { openConfigResources } from "../../src/daemon/config-resources.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { orThrow } from "../harness/or-throw.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { configText } from "../integration/simulated-network.ts";
import { createAuthority } from "../web/http/tls/certificate-authority.ts";

/** Returns the problems of a configuration with these sections. */
function problemsOf(sections: Parameters<typeof configText>[1]): readonly string[] {
  const parsed = orThrow(parseConfig("proxywarden.yaml", configText("https://service.test", sections), {}));
  const opened = openConfigResources(parsed, { clock: systemClock, version: "0" });
  return opened.ok ? [] : opened.error.map(({ path, message }) => `${path}: ${message}`);
}

test("a file that should hold the URL of a webhook and holds something else is rejected, and not quoted", () => {
  const folder = createTempFolder();
  const problemsWith = (text: string) =>
    problemsOf({ receivers: [{ name: "chat", webhook_url_file: folder.write("hook", text) }] });
  expect(problemsWith("https://chat.test/hooks/T0\n")).toEqual([]);
  expect(problemsWith("chat.test/hooks/T0")).toEqual([
    `receivers[0].webhook_url_file: ${folder.pathOf("hook")} holds no http or https URL`,
  ]);
});

test("unusable certificates are rejected with the configuration, by the key that names them", () => {
  const folder = createTempFolder();
  const authority = createAuthority("ours");
  const [one, other] = [authority.issue("DNS:a.test", "clientAuth"), authority.issue("DNS:b.test", "clientAuth")];
  const file = (name: string, text: string) => folder.write(name, text);
  const [cert, key] = [file("one.crt", one.cert), file("other.key", other.key)];
  expect(problemsOf({ service: { tls_config: { cert_file: cert, key_file: file("one.key", one.key) } } })).toEqual([]);
  expect(problemsOf({ service: { tls_config: { cert_file: cert, key_file: key } } })).toEqual([
    expect.stringMatching(/^service\.tls_config: cert_file and key_file can't be used: .*mismatch/),
  ]);
  for (const [place, service] of [
    ["service.ca_file", { ca_file: key }],
    ["service.ca_file", { ca_file: key, tls_config: { server_name: "a.test" } }],
    ["service.tls_config.ca_file", { tls_config: { ca_file: key } }],
  ] as const) {
    expect(problemsOf({ service })).toEqual([
      `${place}: ${key} holds no certificate; it should hold one or more in PEM, each from BEGIN to END`,
    ]);
  }
});
