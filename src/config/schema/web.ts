import { z } from "zod";
import { fail, ok } from "../../base/result.ts";
import {
  baseUrl,
  filePath,
  list,
  parsedText,
  rejectDuplicateNames,
  rejectValue,
  section,
  text,
  valueKinds,
  webFilePath,
} from "./value-types.ts";

/**
 * The address that the daemon listens on. An empty host means all interfaces, and a host name its first address. With
 * port 0, the system chooses a free port.
 */
export type ListenAddress = z.output<typeof listenAddress>;

const LISTEN_EXPECTED = "must be a host and a port from 0 to 65535, such as 0.0.0.0:9713, [::]:9713 or :9713";
const LISTEN_PATTERN = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/]*)):(\d{1,5})$/;

/** The key `listen`. */
export const listenAddress = parsedText({ name: "host:port" }, LISTEN_EXPECTED, LISTEN_PATTERN.source, (text) => {
  const [, address, host = "", port] = LISTEN_PATTERN.exec(text) ?? [];
  // Without a match the port is NaN.
  return Number(port) <= 65_535 ? ok({ host: address ?? host, port: Number(port) }) : fail(LISTEN_EXPECTED);
})
  .prefault("0.0.0.0:9713")
  .describe(
    "Address of /metrics, the status page and the API. If a host name has several addresses, the first one is used.",
  );

const NETWORK_EXPECTED = "must be an IP address or a network such as 10.0.0.7, 10.0.0.0/8 or 2001:db8::/32";
const NETWORK = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]);

const network = z
  .string({ error: NETWORK_EXPECTED })
  .refine((value) => NETWORK.safeParse(value).success, NETWORK_EXPECTED)
  .register(valueKinds, { name: "IP address or network" });

const TRUSTED_PROXIES_MAX = 100;

/** Name of the operator whose token is in `web.admin_token_file`. */
export const ADMIN_OPERATOR = "admin";
const OPERATORS_MAX = 100;

const operator = section({
  name: text("a name of 1 to 64 letters, digits and . _ @ -", { name: "name" }, /^[A-Za-z0-9._@-]{1,64}$/).describe(
    "Unique name, which the journal records.",
  ),
  token_file: filePath().describe("File that contains the operator's bearer token. It is read again when it changes."),
});

const linkUrl = (example: string) =>
  baseUrl(`an http or https URL such as ${example}`, ({ search, hash }) =>
    search === "" && hash === "" ? null : `a URL without a query or fragment, such as ${example}`,
  );

const linksSection = section({
  runbook: linkUrl("https://proxywarden.example.net/docs/runbook.md")
    .exactOptional()
    .describe(
      "Address at which operators read docs/runbook.md. Banners link to the section of their alert, such as `#proxywardenpaused`, and alerts that the daemon sends to Alertmanager have a `runbook_url`.",
    ),
  grafana: linkUrl("https://grafana.example.net")
    .exactOptional()
    .describe("Base URL of a Grafana that has the dashboards in `grafana/`. Banners and nodes link to them."),
})
  .prefault({})
  .describe("Links from the status page and from alerts to other systems.");

/** The section `web`: the daemon's own HTTP server. */
export const webSection = section({
  listen: listenAddress,
  web_config_file: webFilePath()
    .exactOptional()
    .describe(
      "File with settings for TLS, client certificates, users and headers in the format of Prometheus' exporter-toolkit. It is read again when it or a file that it names changes. By default plain HTTP without authentication is served.",
    ),
  operators: list(operator, "operators", OPERATORS_MAX)
    .superRefine(rejectDuplicateNames)
    .default([])
    .describe(
      "Operators who may send commands. The journal records each command with the operator's name. If neither this nor `admin_token_file` is set, there are no routes for commands; otherwise `/-/reload` needs a token as well.",
    ),
  admin_token_file: filePath()
    .exactOptional()
    .describe("File that contains the token of an operator named `admin`. Shorthand for an entry of `operators`."),
  links: linksSection,
  trusted_proxies: list(network, "IP addresses and networks", TRUSTED_PROXIES_MAX)
    .default([])
    .describe(
      "Reverse proxies whose `X-Forwarded-For` header is trusted. A request through one counts against the limits of the client: the last address in the header that is not itself a trusted proxy. Connections from a trusted proxy count only against the limit on the total number of connections.",
    ),
})
  .superRefine(({ operators, admin_token_file }, context) => {
    const index = operators.findIndex(({ name }) => name === ADMIN_OPERATOR);
    if (index < 0 || admin_token_file === undefined) return;
    const expected = `must be unique: ${ADMIN_OPERATOR} is already the name of the operator of admin_token_file`;
    rejectValue(context, ADMIN_OPERATOR, expected, ["operators", index, "name"]);
  })
  .prefault({})
  .describe("HTTP server of the daemon.");
