import type { Result } from "../../src/base/result.ts";
import { type ConfigProblem, formatProblem } from "../../src/config/diagnostics/problem.ts";

type Problem = string | ConfigProblem | { readonly message: string };

/** Returns the value of a result. Throws all that is wrong if there is none. */
export function orThrow<T>(result: Result<T, Problem | readonly Problem[]>): T {
  if (result.ok) return result.value;
  throw new Error([result.error].flat().map(textOf).join("\n"));
}

function textOf(problem: Problem): string {
  if (typeof problem === "string") return problem;
  return "expected" in problem ? formatProblem(problem) : problem.message;
}
