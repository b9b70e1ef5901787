import { z } from "zod";
import { fail, ok, type Result } from "../base/result.ts";
import { checkFile, type ReadFile } from "./checks.ts";
import { type ConfigProblem, formatPath, toProblems } from "./diagnostics/problem.ts";
import { type ListenAddress, listenAddress, webSection } from "./schema/web.ts";
import { isTls, webSchema } from "./schema/web-file.ts";
import { valueAt } from "./yaml/position.ts";
import { checkYaml, type YamlSource } from "./yaml-reader.ts";

/** Where a configuration makes the daemon listen. */
export interface ConfiguredServer {
  readonly listen: ListenAddress;
  readonly isEncrypted: boolean;
  /** Other problems with the section `web`, and with the web configuration. */
  readonly problems: readonly ConfigProblem[];
}

/** The keys of a configuration that determine where the daemon listens. "" is the document. */
const LISTEN_KEYS: readonly string[] = ["", "web", "web.listen", "web.web_config_file"];

const SECTION = z.looseObject({ web: webSection });

/**
 * Returns where the daemon of a configuration listens. Fails only if this can't be determined, because a daemon whose
 * files became invalid continues with the previous ones.
 */
export function readConfiguredServer(
  source: YamlSource,
  readFile: ReadFile,
): Result<ConfiguredServer, readonly ConfigProblem[]> {
  const config = checkKeys(SECTION, source, readFile, LISTEN_KEYS);
  if (!config.ok) return config;
  const { value } = config.value;
  // Variables of other sections may be set only for the daemon.
  const problems = config.value.problems.filter(({ path }) => path === "web" || path.startsWith("web."));
  const listen = listenAddress.parse(valueAt(value, ["web", "listen"]));
  const file = valueAt(value, ["web", "web_config_file"]);
  const text = typeof file === "string" ? readFile(file) : null;
  if (typeof file !== "string" || !text?.ok) return ok({ listen, isEncrypted: false, problems });
  const web = checkKeys(webSchema, { file, text: text.value, env: source.env, isGoYaml: true }, readFile, [""]);
  if (!web.ok) return web;
  // Any mapping shows whether TLS is on, even if the daemon could not use it.
  const tls = valueAt(web.value.value, ["tls_server_config"]) ?? {};
  if (typeof tls !== "object" || Array.isArray(tls)) return fail(web.value.problems);
  return ok({ listen, isEncrypted: isTls(tls), problems: [...problems, ...web.value.problems] });
}

/** Checks a file. Fails with the problems of `keys`, and returns those of other keys. */
function checkKeys(
  schema: z.ZodType,
  source: YamlSource,
  readFile: ReadFile,
  keys: readonly string[],
): Result<{ readonly value: unknown; readonly problems: readonly ConfigProblem[] }, readonly ConfigProblem[]> {
  const { value, findings } = checkYaml(schema, source, (check, path) => checkFile(path, readFile, check === "web"));
  const own = findings.filter(({ path }) => keys.includes(formatPath(path)));
  if (own.length > 0) return fail(toProblems(source.file, own));
  return ok({ value, problems: toProblems(source.file, findings) });
}
