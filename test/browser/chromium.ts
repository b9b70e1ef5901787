import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** Where Debian and others put it. */
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"] as const;

/** Starts Chromium. Throws where there is none, and says what to install. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = BROWSERS.find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error(`there is no ${BROWSERS.join(", ")}: apt-get install chromium`);
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}
