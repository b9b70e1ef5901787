import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A source file as the rules read it. */
export interface Source {
  /** Path from the repository's root, such as `src/web/http/server.ts`. */
  readonly path: string;
  readonly text: string;
  /** The text with comments and the insides of strings and regular expressions blanked; every offset is kept. */
  readonly code: string;
}

/** Makes a source of a text, as if it stood at `path`. */
export const sourceOf = (path: string, text: string): Source => ({ path, text, code: blankOut(text) });

/** Every TypeScript file below a folder of the repository. */
export function readSources(folder: "src" | "test" | "bench" | "grafana" | "scripts"): readonly Source[] {
  const root = join(import.meta.dirname, "../..");
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
    .sort()
    .map((path) => sourceOf(path, readFileSync(join(root, path), "utf8")));
}

const importForms = [
  /\b(?:import|export)\b[^;"'`]*?\bfrom\s*(["'])/g,
  /\bimport\s*(["'])/g,
  /\bimport\s*\(\s*(["'])/g,
  /\brequire\s*\(\s*(["'])/g,
];

/** Returns the imports of a file in any form, including types. */
export function importsOf({ text, code }: Source): readonly string[] {
  return importForms.flatMap((form) =>
    [...code.matchAll(form)].map((match) => {
      const start = match.index + match[0].length;
      return text.slice(start, code.indexOf(match[1]!, start));
    }),
  );
}

const comment = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y;
const quoted = /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'/y;
const templateRun = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{|$)/y;
const regex = /\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const plain = /[\w$]+|[\s\S]/y;
// Where a slash begins a regular expression: after these, an operand is due.
const operandDue = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|await|yield|throw))$/;

function blankOut(text: string): string {
  let code = "";
  // For every template that is open: braces that are open in its substitution.
  const templates: number[] = [];
  const next = (pattern: RegExp): string | null => {
    pattern.lastIndex = code.length;
    return pattern.exec(text)?.[0] ?? null;
  };
  const template = () => {
    const run = next(templateRun) ?? "";
    const end = run.endsWith("${") ? "${" : "`";
    code += blank(run.slice(0, -end.length)) + end;
    if (end === "${") templates.push(0);
  };
  const regexIsDue = () => text[code.length] === "/" && operandDue.test(code.trimEnd());
  while (code.length < text.length) {
    const skipped = next(comment);
    if (skipped !== null) {
      code += blank(skipped);
      continue;
    }
    const literal = next(quoted) ?? (regexIsDue() ? next(regex) : null);
    if (literal !== null) {
      code += literal[0] + blank(literal.slice(1, -1)) + literal.at(-1);
      continue;
    }
    const piece = next(plain) ?? "";
    code += piece;
    const depth = templates.length - 1;
    if (piece === "{" && depth >= 0) templates[depth]!++;
    if (piece === "}" && depth >= 0 && templates[depth]!-- === 0) {
      templates.pop();
      template();
    } else if (piece === "`") {
      template();
    }
  }
  return code;
}

const blank = (text: string) => text.replace(/[^\n]/g, " ");
