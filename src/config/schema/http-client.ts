import type { z } from "zod";
import { baseUrl, booleanFlag, exactlyOneOf, filePath, notBoth, RUN_ALWAYS, section, text } from "./value-types.ts";

const AUTH_TYPE_EXPECTED = "the type of an Authorization header, such as Bearer";

const CREDENTIALS_EXPECTED = "credentials of ASCII characters, on one line";

const basicAuth = exactlyOneOf(["password", "password_file"], {
  username: text("a user name").describe("User name."),
  password: text("a password", { name: "string", secret: "the password" })
    .exactOptional()
    .describe("Password. Either this or `password_file`."),
  password_file: filePath().exactOptional().describe("File that contains the password. Either this or `password`."),
});

const authorization = exactlyOneOf(["credentials", "credentials_file"], {
  type: text(AUTH_TYPE_EXPECTED)
    .regex(/^(?!basic$)[\w!#$%&'*+.^`|~-]+$/i, `must be ${AUTH_TYPE_EXPECTED}; use basic_auth instead of Basic`)
    .default("Bearer")
    .describe("Type of the Authorization header."),
  credentials: text(CREDENTIALS_EXPECTED, { name: "string", secret: "the credential" })
    .regex(/^[\x20-\x7e]*$/, `must be ${CREDENTIALS_EXPECTED}`)
    .exactOptional()
    .describe("Credentials in the header. Either this or `credentials_file`."),
  credentials_file: filePath()
    .exactOptional()
    .describe("File that contains the credentials. Either this or `credentials`."),
});

/** TLS settings of a client, in Prometheus' format. */
export const tlsConfig = section({
  ca_file: filePath().exactOptional().describe("PEM file of the authorities used to verify the server's certificate."),
  cert_file: filePath().exactOptional().describe("PEM file of the client certificate. Requires `key_file`."),
  key_file: filePath().exactOptional().describe("PEM file of the key of the client certificate."),
  server_name: text("the name of a server")
    .exactOptional()
    .describe("Name in the server's certificate. Defaults to the host of the URL."),
  insecure_skip_verify: booleanFlag()
    .default(false)
    .describe("Disables the verification of the server's certificate. Not for production."),
}).refine((value) => "cert_file" in value === "key_file" in value, {
  ...RUN_ALWAYS,
  error: "must have cert_file and key_file, or neither",
});

const authSections = {
  basic_auth: basicAuth.exactOptional().describe("User name and password. Either this or `authorization`."),
  authorization: authorization.exactOptional().describe("Authorization header. Either this or `basic_auth`."),
  tls_config: tlsConfig.exactOptional().describe("TLS settings."),
};

const oneAuthMethod = notBoth("basic_auth", "authorization");

/** The URL of a server and how to reach it, in Prometheus' format. `port` is that of the example in an error. */
export const endpoint = (port: number, meaning: string) =>
  section({
    url: baseUrl(`an http or https URL, such as http://localhost:${port}`, (url) => {
      if (url.username !== "" || url.password !== "") return "a URL without credentials, which belong in basic_auth";
      if (url.search !== "" || url.hash !== "") return "a URL without a query or fragment";
      return /\/api\/v\d\/*$/.test(url.pathname) ? "a URL without /api/… at its end, which is appended" : null;
    }).describe("Base URL. `/api/…` is appended."),
    ...authSections,
  })
    .check(oneAuthMethod)
    .exactOptional()
    .describe(meaning);

/** How to reach a server whose URL is given elsewhere, in the format of the HTTP config file of promtool and amtool. */
export const httpClientSchema = section(authSections).check(oneAuthMethod);

/** How to reach a server. Keys as in the file. */
export type HttpClient = z.output<typeof httpClientSchema>;

/** TLS settings of a client. Keys as in the file. */
export type TlsConfig = z.output<typeof tlsConfig>;
