import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** Paths of Chromium on Debian and other systems. */
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"] as const;

/** Starts Chromium. Throws with the package to install if there is none. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = BROWSERS.find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error(`none of ${BROWSERS.join(", ")} exists: apt-get install chromium`);
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}
