import { styleText } from "node:util";
import type { CommandContext, Output } from "../context.ts";

/** Meaning of a color. */
export type Tone = "good" | "bad" | "warning" | "title";

/** Colors a text, or returns it unchanged if the stream has no colors. */
export type Paint = (tone: Tone, text: string) => string;

/** True for --color, false for --no-color, undefined if neither is given. */
export type ColorOption = boolean | undefined;

const TONE_FORMATS = { good: "green", bad: "red", warning: "yellow", title: "bold" } as const;

/**
 * Returns whether a stream gets colors: never if NO_COLOR is set and not empty (no-color.org), or if FORCE_COLOR is `0`
 * or `false`; always if FORCE_COLOR has any other value; and otherwise if it is a terminal with colors.
 */
export function supportsColor({ isTTY }: Output, { NO_COLOR, FORCE_COLOR, TERM }: CommandContext["env"]): boolean {
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== "0" && FORCE_COLOR !== "false";
  return isTTY === true && TERM !== "dumb";
}

/** Returns a function that colors text for one stream. */
export function createPaint(stream: Output, env: CommandContext["env"]): Paint {
  if (!supportsColor(stream, env)) return (_tone, text) => text;
  return (tone, text) => styleText(TONE_FORMATS[tone], text, { validateStream: false });
}

/** Applies --color or --no-color, which override the environment. */
export function withColorOption(env: CommandContext["env"], colorOption: ColorOption): CommandContext["env"] {
  if (colorOption === undefined) return env;
  return colorOption ? { ...env, NO_COLOR: undefined, FORCE_COLOR: "1" } : { ...env, NO_COLOR: "1" };
}
