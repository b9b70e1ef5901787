/** Imports and exports of the page's modules: only named functions, classes and constants. */
const IMPORT = /^import\s+\{([^}]*)\}\s+from\s+"([^"]+)";/gm;
const EXPORT = /^export (?=(?:async )?(?:function|class|const) (\w+))/gm;
const UNKNOWN_IMPORT_OR_EXPORT = /^(?:import|export)\b.*/m;

/**
 * Joins a module and the modules that it imports into one script, because each file takes a browser several milliseconds.
 * A module becomes a function that returns what it exports, and comes after the modules that it imports. Throws if a
 * module has imports or exports of another kind, or if modules import each other in a circle.
 */
export function joinModules(modules: ReadonlyMap<string, string>, entry: string): string {
  const joined = new Map<string, string>();
  const open = new Set<string>();
  const add = (name: string): void => {
    if (joined.has(name)) return;
    if (open.has(name)) throw new Error(`${name} is imported by a module that it imports`);
    open.add(name);
    const exported: string[] = [];
    const body = fileOf(modules, name)
      .replace(IMPORT, (_, names: string, path: string) => {
        const imported = new URL(path, `file:///${name}`).pathname.slice(1);
        add(imported);
        return `const {${names.replace(/\bas\b/g, ":")}} = modules["${imported}"];`;
      })
      .replace(EXPORT, (_, exportedName: string) => {
        exported.push(exportedName);
        return "";
      });
    const unknown = UNKNOWN_IMPORT_OR_EXPORT.exec(body);
    if (unknown !== null) throw new Error(`${name} has an import or export that can't be joined: ${unknown[0]}`);
    joined.set(name, `modules["${name}"] = (() => {\n${body}\nreturn { ${exported.join(", ")} };\n})();\n`);
  };
  add(entry);
  return `const modules = {};\n${[...joined.values()].join("")}`;
}

/**
 * Replaces a page's links to style sheets with one link to `name`. Returns the page, and the text of that style sheet:
 * all of them joined in the order of the links. Throws if one is missing.
 */
export function joinStyles(page: string, files: ReadonlyMap<string, string>, name: string) {
  const texts: string[] = [];
  const html = page.replace(STYLE_LINK, (_, path: string) => {
    texts.push(fileOf(files, path));
    return texts.length === 1 ? `<link rel="stylesheet" href="page/${name}">\n` : "";
  });
  return { html, css: texts.join("\n") };
}

const STYLE_LINK = /<link rel="stylesheet" href="page\/([^"]+)">\n/g;

/** Returns a file of the page. Throws if it is missing. */
export function fileOf(files: ReadonlyMap<string, string>, name: string): string {
  const text = files.get(name);
  if (text === undefined) throw new Error(`the status page has no file ${name}`);
  return text;
}
