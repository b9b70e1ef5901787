import { createHash } from "node:crypto";

/** What the start page says. */
export interface StartPage {
  readonly version: string;
  /** One line on how things stand, as plain text. */
  readonly line: string;
}

const links = [
  ["/metrics", "what Prometheus scrapes"],
  ["/-/healthy", "whether the process lives"],
  ["/-/ready", "whether it works, and if not, why"],
  ["/api/v1/status", "collectors, plan, process and what holds every action, as JSON"],
  ["/api/v1/nodes", "the fleet; page, limit, status, country, region and q choose"],
  ["/api/v1/policies", "what they say, their mode, and how many nodes are pending, firing and in episodes"],
  ["/api/v1/decisions", "who was acted on or held, and why; node, policy, until and limit choose"],
  ["/api/v1/actions", "what was done, and what came of it; the same, and state=awaiting for what waits for a person"],
  ["/api/v1/budget", "calls left, by category and month"],
] as const;

const style = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 10vh auto; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; margin: 0; }
h1 small { font-weight: normal; opacity: 0.65; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.4rem 1.5rem; }
dd { margin: 0; opacity: 0.8; }
a { font-family: ui-monospace, monospace; }
@media (max-width: 32rem) { dl { display: block; } dd { margin-bottom: 0.8rem; } }
`;

/** The Content-Security-Policy of the start page: its own style, by hash, and nothing else. */
export const START_PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The page at `/`: one self-contained HTML text. */
export function renderStartPage({ version, line }: StartPage): string {
  const rows = links.map(([path, what]) => `<dt><a href="${path}">${path}</a></dt><dd>${what}</dd>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>proxywarden</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<h1>proxywarden <small>${escapeHtml(version)}</small></h1>
<p>${escapeHtml(line)}</p>
<dl>
${rows.join("\n")}
</dl>
</body>
</html>
`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => entities[character] ?? "");
