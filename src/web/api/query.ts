import { NODE_STATUSES } from "../../model/node.ts";
import type { JournalQuery } from "../../model/remediation/journal.ts";
import { parseIsoTime } from "../../model/time.ts";

/** Maximum number of rows in a response. More would block the event loop for too long. */
export const ROWS_MAX = 1_000;
/** Number of rows in a response if the query has no limit. */
export const ROWS_DEFAULT = 100;
const PAGES_MAX = 1_000_000;
const TEXT_CHARS_MAX = 256;

/** Returns what a parameter must be, or null if it is valid. */
type Check = (value: string) => string | null;

const integerUpTo =
  (max: number): Check =>
  (value) =>
    /^\d{1,9}$/.test(value) && Number(value) >= 1 && Number(value) <= max
      ? null
      : `must be a whole number from 1 to ${max}`;

const oneOf =
  (values: readonly string[]): Check =>
  (value) =>
    values.includes(value) ? null : `must be one of ${values.join(", ")}`;

/** Checks a text to look for. */
export const checkText: Check = (value) =>
  value !== "" && value.length <= TEXT_CHARS_MAX ? null : `must be 1 to ${TEXT_CHARS_MAX} characters`;

// Only UTC is accepted, because the `+` of an offset is decoded as a space unless it is escaped.
const checkTime: Check = (value) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z$/.test(value) && !Number.isNaN(parseIsoTime(value))
    ? null
    : "must be a time in UTC, such as 2026-11-21T03:12:44Z";

const PARAMETER_CHECKS = {
  page: integerUpTo(PAGES_MAX),
  limit: integerUpTo(ROWS_MAX),
  status: oneOf(NODE_STATUSES),
  country: checkText,
  region: checkText,
  q: checkText,
  node: checkText,
  policy: checkText,
  until: checkTime,
  state: oneOf(["awaiting", "approved"]),
  last_event_id: checkText,
} satisfies Record<string, Check>;

/** A query parameter of a route. */
export type Parameter = keyof typeof PARAMETER_CHECKS;

/** Valid query parameters of a request. */
export type Query = Readonly<Partial<Record<Parameter, string>>>;

/** Returns the first problem of a query and what would be valid, or null if all parameters are allowed and valid. */
export function queryProblem(query: object, allowed: readonly Parameter[]): string | null {
  for (const [name, value] of Object.entries(query)) {
    const problem = parameterProblem(name, value, allowed);
    if (problem !== null) return `parameter ${JSON.stringify(name.slice(0, TEXT_CHARS_MAX))}: ${problem}`;
  }
  return null;
}

function parameterProblem(name: string, value: unknown, allowed: readonly Parameter[]): string | null {
  const parameter = allowed.find((known) => known === name);
  if (parameter === undefined)
    return `unknown; ${allowed.length === 0 ? "this route has no query parameters" : `must be one of ${allowed.join(", ")}`}`;
  return typeof value === "string" ? PARAMETER_CHECKS[parameter](value) : "must be given only once";
}

/** Converts the query of a route that shows rows of the journal. */
export const rowsQuery = ({ node, policy, until, limit }: Query): JournalQuery => ({
  ...(node === undefined ? {} : { node }),
  ...(policy === undefined ? {} : { policy }),
  ...(until === undefined ? {} : { until: Date.parse(until) }),
  limit: Number(limit ?? ROWS_DEFAULT),
});
