import { tlsConfig } from "./http-client.ts";
import {
  baseUrl,
  booleanFlag,
  duration,
  exactlyOneOf,
  filePath,
  oneOf,
  RUN_ALWAYS,
  text,
  wholeNumber,
} from "./value-types.ts";

const API_KEY = { name: "string", secret: "the API key" };

/** The section `service`: the URL of the management API and how to reach it. */
export const serviceSchema = exactlyOneOf(["api_key", "api_key_file"], {
  base_url: baseUrl("an http or https URL, such as https://proxy.example.net", (url) => {
    if (url.username !== "" || url.password !== "") return "a URL without credentials; set api_key_file instead";
    if (url.search !== "" || url.hash !== "") return "a URL without a query or fragment";
    return /\/v1\/*$/.test(url.pathname) ? "a URL without /v1 at its end, which is appended to every request" : null;
  }).describe("Base URL of the management service. `/v1/…` is appended; redirects are not followed."),
  api_key: text("an API key of visible ASCII characters, without blanks", API_KEY, /^[\x21-\x7e]*$/)
    .exactOptional()
    .describe("API key, preferably from an environment variable. Either this or `api_key_file`."),
  api_key_file: filePath()
    .exactOptional()
    .describe(
      "File that contains the API key. It is read again when it changes and after a 401. Either this or `api_key`.",
    ),
  timeout: duration("100ms", "5m").prefault("10s").describe("Timeout of one request, including its body."),
  usage_scale: oneOf(["ratio", "percent"])
    .exactOptional()
    .describe(
      "Scale of cpu_usage, memory_usage and disk_usage, which the service does not state: `ratio` is 0 to 1, `percent` is 0 to 100. If unset, usage is not exported, and it is unknown in policies.",
    ),
  page_limit: wholeNumber(1, 10_000)
    .default(1_000)
    .describe(
      "Number of records requested for each page. If the service returns fewer, that number is used; if it answers 4xx, the daemon falls back to 100, 50, then 20.",
    ),
  ca_file: filePath()
    .exactOptional()
    .describe(
      "PEM file of the certificate authorities used to verify the service's certificate, instead of those that Node.js contains. The system's are not used unless this names their file, such as `/etc/ssl/certs/ca-certificates.crt`. Shorthand for `tls_config.ca_file`.",
    ),
  tls_config: tlsConfig
    .exactOptional()
    .describe(
      "The client certificate, and how the service's certificate is verified. The files are read again when they change.",
    ),
  proxy: baseUrl("the http or https URL of a proxy, such as http://proxy.internal:3128", (url) =>
    url.pathname === "/" && url.search === "" ? null : "the URL of a proxy without a path",
  )
    .exactOptional()
    .describe("URL of an HTTP proxy for requests to the service."),
  proxy_from_environment: booleanFlag()
    .default(false)
    .describe(
      "Whether to use the proxy in the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Without HTTPS_PROXY, HTTP_PROXY is used for https as well. Mutually exclusive with `proxy`.",
    ),
})
  .refine((value) => !("ca_file" in value && value.tls_config?.ca_file !== undefined), {
    ...RUN_ALWAYS,
    error: "must have ca_file or tls_config.ca_file, not both",
  })
  .refine((value) => !("proxy" in value && value.proxy_from_environment), {
    ...RUN_ALWAYS,
    error: "must have proxy or proxy_from_environment, not both",
  })
  .describe("Management service and how to reach it.");
