import { byId } from "./dom.ts";
import { readStored, store } from "./storage.ts";

const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const KEY = "proxywarden.theme";
const THEME_BUTTONS: Readonly<Record<Theme, readonly [sign: string, label: string]>> = {
  auto: ["◐", "Theme: system"],
  light: ["○", "Theme: light"],
  dark: ["●", "Theme: dark"],
};

/** Applies the stored theme, and lets the button switch it. `onChange` is called after the colors changed. */
export function startTheme(onChange: () => void): void {
  const button = byId("theme");
  let theme = THEMES.find((known) => known === readStored("localStorage", KEY)) ?? "auto";
  const applyTheme = () => {
    const [sign, label] = THEME_BUTTONS[theme];
    document.documentElement.dataset.theme = theme;
    button.textContent = sign;
    button.title = label;
    button.setAttribute("aria-label", label);
  };
  applyTheme();
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
    store("localStorage", KEY, theme);
    applyTheme();
    onChange();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onChange);
}
