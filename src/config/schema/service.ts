import { tlsConfig } from "./http-client.ts";
import {
  booleanFlag,
  duration,
  exactlyOneOf,
  filePath,
  httpUrl,
  oneOf,
  RUN_ALWAYS,
  section,
  text,
  wholeNumber,
} from "./value-types.ts";

const API_KEY_EXPECTED = "an API key of visible ASCII characters, without blanks";

/** The section `service`: where the management API is, and how it is reached. */
export const serviceSchema = exactlyOneOf(
  section({
    base_url: httpUrl("an http or https URL, such as https://proxy.example.net", (url) => {
      if (url.username !== "" || url.password !== "")
        return "a URL without credentials: the key goes into api_key_file";
      if (url.search !== "" || url.hash !== "") return "a URL without a query and without a fragment";
      return /\/v1\/*$/.test(url.pathname) ? "a URL without the /v1 at its end: it is appended to every request" : null;
    }).describe("Where the management service is. `/v1/…` is appended; redirects are never followed."),
    api_key: text(API_KEY_EXPECTED, { name: "string", secret: "the API key" })
      .regex(/^[\x21-\x7e]*$/, `must be ${API_KEY_EXPECTED}`)
      .exactOptional()
      .describe("The API key, best taken from an environment variable. Either this or `api_key_file`."),
    api_key_file: filePath()
      .exactOptional()
      .describe("File that holds the API key; read again when it changes and after a 401. Either this or `api_key`."),
    timeout: duration("100ms", "5m").prefault("10s").describe("How long one request may take, its body included."),
    usage_scale: oneOf(["ratio", "percent"])
      .exactOptional()
      .describe(
        "Scale of cpu_usage, memory_usage and disk_usage: `ratio` is 0 to 1, `percent` is 0 to 100. The service doesn't say. Unset: usage is exported by no family and read by no policy.",
      ),
    page_limit: wholeNumber(1, 10_000)
      .default(1_000)
      .describe(
        "Records asked for a page. A smaller clamp by the service is followed; a 4xx on it makes the daemon fall back to 100, then to 20.",
      ),
    ca_file: filePath()
      .exactOptional()
      .describe(
        "PEM file of the authorities that the service's certificate is checked against, instead of the system's. Short for `tls_config.ca_file`.",
      ),
    tls_config: tlsConfig
      .exactOptional()
      .describe(
        "How the service's certificate is checked, and which one the daemon shows to it. The files are read again when they change.",
      ),
    proxy: httpUrl("the http or https URL of a proxy, such as http://proxy.internal:3128", (url) =>
      url.pathname === "/" && url.search === "" ? null : "the URL of a proxy without a path",
    )
      .exactOptional()
      .describe("HTTP proxy through which the service is reached."),
    proxy_from_environment: booleanFlag()
      .default(false)
      .describe(
        "Whether the service is reached through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment name. Without HTTPS_PROXY, HTTP_PROXY is used for https too. Instead of `proxy`.",
      ),
  }),
  "api_key",
  "api_key_file",
)
  .refine((value) => !("ca_file" in value && value.tls_config?.ca_file !== undefined), {
    ...RUN_ALWAYS,
    error: "must have ca_file or tls_config.ca_file, not both",
  })
  .refine((value) => !("proxy" in value && value.proxy_from_environment), {
    ...RUN_ALWAYS,
    error: "must have proxy or proxy_from_environment, not both",
  })
  .describe("The management service, and how to reach it.");
