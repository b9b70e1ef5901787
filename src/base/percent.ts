import { fail, ok, type Result } from "./result.ts";

/** A share of a whole, 0 to 1. */
export type Share = number;

/** Parses a share written as `20%` or `0.5%`, from 0% to 100%. */
export function parsePercent(text: string): Result<Share, string> {
  const match = /^(\d+(?:\.\d+)?)%$/.exec(text);
  const percent = Number(match?.[1]);
  if (match === null || percent > 100) return fail("a share is a percentage from 0% to 100%, such as 20%");
  return ok(percent / 100);
}

/** Formats a share as a percentage with at most two decimals. */
export const formatPercent = (share: Share): string => `${Number((share * 100).toFixed(2))}%`;
