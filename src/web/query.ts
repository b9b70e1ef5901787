import { fail, ok, type Result } from "../base/result.ts";
import { NODE_STATUSES, type NodeStatus } from "../model/node.ts";

/** Which nodes `GET /api/v1/nodes` shows. A filter that is null lets every node through. */
export interface NodesQuery {
  /** From 1. */
  readonly page: number;
  /** Nodes a page, 1 to {@link PAGE_NODES_MAX}. */
  readonly limit: number;
  readonly status: NodeStatus | null;
  readonly country: string | null;
  readonly region: string | null;
  /** A part of the id, the name or the IP address, in any case. */
  readonly q: string | null;
}

/** A page is one JSON text that is made in one go: more would hold up the loop. */
export const PAGE_NODES_MAX = 1_000;
const PAGE_NODES_DEFAULT = 100;
const PAGES_MAX = 1_000_000;
const TEXT_CHARS_MAX = 256;

const parameters = ["page", "limit", "status", "country", "region", "q"] as const;
type Parameter = (typeof parameters)[number];

/** Reads the query of `GET /api/v1/nodes`. The error names the first parameter that is wrong, and what would be right. */
export function readNodesQuery(query: Readonly<Record<string, unknown>>): Result<NodesQuery, string> {
  for (const [name, value] of Object.entries(query)) {
    const problem = isParameter(name) ? parameterProblem(name, value) : `known ones are ${parameters.join(", ")}`;
    if (problem !== null) return fail(`parameter ${JSON.stringify(name.slice(0, TEXT_CHARS_MAX))}: ${problem}`);
  }
  const text = (name: Parameter) => (query[name] === undefined ? null : String(query[name]));
  return ok({
    page: Number(query.page ?? 1),
    limit: Number(query.limit ?? PAGE_NODES_DEFAULT),
    status: NODE_STATUSES.find((status) => status === query.status) ?? null,
    country: text("country"),
    region: text("region"),
    q: text("q"),
  });
}

const isParameter = (name: string): name is Parameter => parameters.some((parameter) => parameter === name);

function parameterProblem(name: Parameter, value: unknown): string | null {
  if (typeof value !== "string") return "it may be given once";
  switch (name) {
    case "page":
      return integerProblem(value, PAGES_MAX);
    case "limit":
      return integerProblem(value, PAGE_NODES_MAX);
    case "status":
      return NODE_STATUSES.some((status) => status === value) ? null : `it is one of ${NODE_STATUSES.join(", ")}`;
    case "country":
    case "region":
    case "q":
      return value !== "" && value.length <= TEXT_CHARS_MAX
        ? null
        : `it is a text of 1 to ${TEXT_CHARS_MAX} characters`;
    default:
      return name satisfies never;
  }
}

const integerProblem = (value: string, max: number): string | null =>
  /^\d{1,9}$/.test(value) && Number(value) >= 1 && Number(value) <= max
    ? null
    : `it is a whole number from 1 to ${max}`;
