import { dirname, isAbsolute, join } from "node:path";
import { ok, type Result } from "../base/result.ts";
import type { Source } from "./document.ts";
import { SECRET_FOUND } from "./issue.ts";
import type { Kind } from "./kind.ts";
import { type Marks, markKey } from "./mark.ts";
import { nearest } from "./nearest.ts";
import { type ConfigProblem, type Finding, type Path, problemOf } from "./problem.ts";
import { type Read, type Refusal, type Rules, readAs } from "./read.ts";
import { type Config, configSchema } from "./schema.ts";

/** What the loader can't know by itself. */
export interface ConfigChecks {
  /** Says what is wrong with a cron expression; null: nothing. */
  cron(expression: string): string | null;
  /** The names of all metric families. */
  readonly families: ReadonlySet<string> | readonly string[];
}

/** A configuration file, and all that is needed to judge it. */
export interface ConfigSource extends Source {
  /** Reads a file that the configuration names. Without it, such files are not looked at. */
  readonly readFile?: (path: string) => Result<string, string>;
  readonly checks: ConfigChecks;
}

/** A configuration that may be put in force, and what its owner should know. */
export interface LoadedConfig {
  readonly config: Config;
  readonly warnings: readonly ConfigProblem[];
}

const RESERVED: Rules["reserved"] = new Map(
  [
    "policies",
    "safety",
    "time_intervals",
    "prometheus",
    "alertmanager",
    "receivers",
    "web.web_config_file",
    "web.admin_token_file",
  ].map((path) => [path, `${path.split(".").at(-1)} is not supported by this version; leave it out`]),
);

/**
 * Reads a configuration, reading no file but through `readFile`. Fails with every error of the file, in the order of its
 * lines. Paths in the file are relative to the folder it stands in.
 */
export function loadConfig(source: ConfigSource): Result<LoadedConfig, readonly ConfigProblem[]> {
  const resolvePath = (path: string) => (isAbsolute(path) ? path : join(dirname(source.file), path));
  const check = (kind: NonNullable<Kind["check"]>, value: string) => refusalOf(kind, value, source, resolvePath);
  const read = readAs(configSchema, source, { reserved: RESERVED, check, resolvePath });
  if (!read.ok) return read;
  const warnings = warningsOf(read.value).map((finding) => problemOf(source.file, finding));
  return ok({ config: read.value.value, warnings });
}

function refusalOf(
  kind: NonNullable<Kind["check"]>,
  value: string,
  { checks, readFile }: ConfigSource,
  resolvePath: (path: string) => string,
): Refusal | null {
  switch (kind) {
    case "cron": {
      const why = checks.cron(value);
      return why === null ? null : { expected: `must be a cron expression of five or six fields: ${why}` };
    }
    case "family": {
      const families = new Set(checks.families);
      const expected = "must be the name of a metric family";
      return families.has(value) ? null : { expected, suggestion: nearest(value, families) };
    }
    case "file": {
      const content = readFile?.(resolvePath(value));
      if (content === undefined) return null;
      if (!content.ok) return { expected: `must be a file that can be read: ${content.error}` };
      return content.value.trim() === "" ? { expected: "must be a file that is not empty" } : null;
    }
    case "path":
      return null;
    default:
      return kind satisfies never;
  }
}

function warningsOf({ value: config, marks }: Read<Config>): Finding[] {
  const warnings: Finding[] = [];
  if (config.service.usage_scale === undefined) {
    const message = "not set: cpu, memory and disk usage are exported by no family and read by no policy";
    const expected = "must be ratio or percent, as the service means it";
    warnings.push({
      ...placeOf(marks, ["service"]),
      path: ["service", "usage_scale"],
      found: "nothing",
      expected,
      message,
    });
  }
  const key = marks.get(markKey(["service", "api_key"]));
  if (key !== undefined && key.variables.length === 0) {
    const message = "the API key is written in clear; take it from the environment, or name its file as api_key_file";
    warnings.push({
      ...key.place,
      path: key.path,
      found: SECRET_FOUND,
      expected: "must not be in the file",
      message,
    });
  }
  return warnings;
}

function placeOf(marks: Marks, path: Path) {
  const mark = marks.get(markKey(path));
  return mark?.key ?? mark?.place ?? { line: 1, column: 1 };
}
