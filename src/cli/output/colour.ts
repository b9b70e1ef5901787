import { styleText } from "node:util";
import type { CommandContext, Output } from "../context.ts";

/** What a colour says. */
export type Tone = "good" | "bad" | "warning" | "title";

/** Colours a text for the stream that it was made for, or leaves it as it is. */
export type Paint = (tone: Tone, text: string) => string;

/** What the command line wishes: true for --color, false for --no-color. */
export type ColorOption = boolean | undefined;

const TONE_FORMATS = { good: "green", bad: "red", warning: "yellow", title: "bold" } as const;

/**
 * Whether a stream gets colours: never where NO_COLOR is set to something (no-color.org), always where FORCE_COLOR is,
 * else on a terminal that has them.
 */
export function supportsColor({ isTTY }: Output, { NO_COLOR, FORCE_COLOR, TERM }: CommandContext["env"]): boolean {
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== "0" && FORCE_COLOR !== "false";
  return isTTY === true && TERM !== "dumb";
}

/** Colours for one stream. */
export function createPaint(stream: Output, env: CommandContext["env"]): Paint {
  if (!supportsColor(stream, env)) return (_tone, text) => text;
  return (tone, text) => styleText(TONE_FORMATS[tone], text, { validateStream: false });
}

/** The environment as the command line wishes it: what is said there goes over what the environment says. */
export function withColorOption(env: CommandContext["env"], colorOption: ColorOption): CommandContext["env"] {
  if (colorOption === undefined) return env;
  return colorOption ? { ...env, NO_COLOR: undefined, FORCE_COLOR: "1" } : { ...env, NO_COLOR: "1" };
}
