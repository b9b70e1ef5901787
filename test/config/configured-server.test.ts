import { expect, test } from "vitest";
import { ok } from "../../src/base/result.ts";
import { readConfiguredServer } from "../../src/config/configured-server.ts";

test.each(["{ cert_file: server.pem }", "{ key_file: server.key }"])(
  "a daemon whose section tls_server_config became %s still listens with TLS",
  (section) => {
    const text = "web: { listen: 127.0.0.1:9713, web_config_file: web.yml }\n";
    const readFile = () => ok(`tls_server_config: ${section}\n`);
    const server = readConfiguredServer({ file: "config.yaml", text, env: {} }, readFile);
    expect(server).toMatchObject({
      ok: true,
      value: { isEncrypted: true, problems: [{ file: "web.yml", expected: expect.stringMatching(/^must have /) }] },
    });
  },
);
