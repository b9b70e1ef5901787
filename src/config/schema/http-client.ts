import type { z } from "zod";
import {
  booleanFlag,
  exactlyOneOf,
  filePath,
  httpUrl,
  nonBlankText,
  RUN_ALWAYS,
  section,
  text,
} from "./value-types.ts";

const AUTH_TYPE_EXPECTED = "the type of an Authorization header, such as Bearer";

const CREDENTIALS_EXPECTED = "credentials of ASCII characters, on one line";

const basicAuth = exactlyOneOf(
  section({
    username: nonBlankText("a user name", { name: "string" }).describe("The user."),
    password: nonBlankText("a password", { name: "string", secret: "the password" })
      .exactOptional()
      .describe("The password. Either this or `password_file`."),
    password_file: filePath().exactOptional().describe("File that holds the password. Either this or `password`."),
  }),
  "password",
  "password_file",
);

const authorization = exactlyOneOf(
  section({
    type: text(AUTH_TYPE_EXPECTED, { name: "string" })
      .regex(/^(?!basic$)[\w!#$%&'*+.^`|~-]+$/i, `must be ${AUTH_TYPE_EXPECTED}; for Basic there is basic_auth`)
      .default("Bearer")
      .describe("Type of the Authorization header."),
    credentials: nonBlankText(CREDENTIALS_EXPECTED, { name: "string", secret: "what authorizes us" })
      .regex(/^[\x20-\x7e]*$/, `must be ${CREDENTIALS_EXPECTED}`)
      .exactOptional()
      .describe("What follows the type. Either this or `credentials_file`."),
    credentials_file: filePath()
      .exactOptional()
      .describe("File that holds what follows the type. Either this or `credentials`."),
  }),
  "credentials",
  "credentials_file",
);

/** How a server's certificate is checked and ours is shown, as Prometheus writes it. */
export const tlsConfig = section({
  ca_file: filePath().exactOptional().describe("PEM file of the authorities that its certificate is checked against."),
  cert_file: filePath().exactOptional().describe("PEM file of our certificate; `key_file` goes with it."),
  key_file: filePath().exactOptional().describe("PEM file of our certificate's key."),
  server_name: nonBlankText("the name of a server", { name: "string" })
    .exactOptional()
    .describe("Name that its certificate has, where it is not that of the URL."),
  insecure_skip_verify: booleanFlag().default(false).describe("Takes any certificate. Not for production."),
}).refine((value) => "cert_file" in value === "key_file" in value, {
  ...RUN_ALWAYS,
  error: "must have cert_file and key_file, or neither",
});

const authSections = {
  basic_auth: basicAuth.exactOptional().describe("A user and a password for it. Either this or `authorization`."),
  authorization: authorization.exactOptional().describe("Authorization header for it. Either this or `basic_auth`."),
  tls_config: tlsConfig.exactOptional().describe("How its certificate is checked, and ours is shown."),
};

const hasOneAuthMethod = (value: object): boolean => !("basic_auth" in value && "authorization" in value);
const ONE_AUTH_METHOD = { ...RUN_ALWAYS, error: "must have basic_auth or authorization, not both" };

/** A server that we ask or tell, and how to reach it, as Prometheus writes it. `port`: for the example. */
export const endpoint = (port: number, meaning: string) =>
  section({
    url: httpUrl(`an http or https URL, such as http://localhost:${port}`, (url) => {
      if (url.username !== "" || url.password !== "") return "a URL without credentials: they go into basic_auth";
      return url.search !== "" || url.hash !== "" ? "a URL without a query and without a fragment" : null;
    }).describe("Where it is. `/api/…` is appended."),
    ...authSections,
  })
    .refine(hasOneAuthMethod, ONE_AUTH_METHOD)
    .exactOptional()
    .describe(meaning);

/** How a client reaches a server whose URL it knows: what promtool and amtool call an HTTP config file. */
export const httpClientSchema = section(authSections).refine(hasOneAuthMethod, ONE_AUTH_METHOD);

/** How a server is reached. Keys as in the file. */
export type HttpClient = z.output<typeof httpClientSchema>;

/** How TLS is spoken with a server. Keys as in the file. */
export type TlsConfig = z.output<typeof tlsConfig>;
