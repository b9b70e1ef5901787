import { fail, ok, type Result } from "../../base/result.ts";
import { NODE_STATUSES, type NodeStatus } from "../../model/node.ts";
import type { JournalQuery } from "../../model/remediation/journal.ts";

/** Which nodes `GET /api/v1/nodes` shows. A filter that is null lets every node through. */
export interface NodesQuery {
  /** From 1. */
  readonly page: number;
  /** Nodes a page, 1 to {@link ROWS_MAX}. */
  readonly limit: number;
  readonly status: NodeStatus | null;
  readonly country: string | null;
  readonly region: string | null;
  /** A part of the id, the name or the IP address, in any case. */
  readonly q: string | null;
}

/** Which rows of the journal a route shows. */
export interface RowsQuery extends JournalQuery {
  /** Only what waits for a person. */
  readonly awaiting: boolean;
}

/** An answer is one JSON text that is made in one go: more rows would hold up the loop. */
export const ROWS_MAX = 1_000;
const ROWS_DEFAULT = 100;
const PAGES_MAX = 1_000_000;
const TEXT_CHARS_MAX = 256;

/** What a parameter's text must be; null: it is. */
type Check = (value: string) => string | null;

const integerParameter =
  (max: number): Check =>
  (value) =>
    /^\d{1,9}$/.test(value) && Number(value) >= 1 && Number(value) <= max
      ? null
      : `must be a whole number from 1 to ${max}`;

const choiceParameter =
  (values: readonly string[]): Check =>
  (value) =>
    values.includes(value) ? null : `must be one of ${values.join(", ")}`;

const textParameter: Check = (value) =>
  value !== "" && value.length <= TEXT_CHARS_MAX ? null : `must be 1 to ${TEXT_CHARS_MAX} characters`;

// UTC alone: the `+` of an offset arrives as a blank where it was not escaped.
const timeParameter: Check = (value) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z$/.test(value) && !Number.isNaN(Date.parse(value))
    ? null
    : "must be a time in UTC, such as 2026-11-21T03:12:44Z";

/** Every parameter of every route. */
const PARAMETER_CHECKS = {
  page: integerParameter(PAGES_MAX),
  limit: integerParameter(ROWS_MAX),
  status: choiceParameter(NODE_STATUSES),
  country: textParameter,
  region: textParameter,
  q: textParameter,
  node: textParameter,
  policy: textParameter,
  until: timeParameter,
  state: choiceParameter(["awaiting"]),
  last_event_id: textParameter,
} satisfies Record<string, Check>;
type Parameter = keyof typeof PARAMETER_CHECKS;

type Query = Readonly<Record<string, unknown>>;

const NODES_PARAMETERS = ["page", "limit", "status", "country", "region", "q"] as const;
const ROWS_PARAMETERS = ["node", "policy", "until", "limit"] as const;
const ORDERS_PARAMETERS = ["node", "until", "limit"] as const;
const ACTIONS_PARAMETERS = [...ROWS_PARAMETERS, "state"] as const;
const POLICIES_PARAMETERS = ["policy"] as const;
const EVENTS_PARAMETERS = ["last_event_id"] as const;

/** Reads the query of `GET /api/v1/nodes`. The error names the first parameter that is wrong, and what would be right. */
export function readNodesQuery(query: Query): Result<NodesQuery, string> {
  const given = readParameters(query, NODES_PARAMETERS);
  if (!given.ok) return given;
  const { page, limit, status, country, region, q } = given.value;
  return ok({
    page: Number(page ?? 1),
    limit: Number(limit ?? ROWS_DEFAULT),
    status: NODE_STATUSES.find((known) => known === status) ?? null,
    country: country ?? null,
    region: region ?? null,
    q: q ?? null,
  });
}

/** Reads the query of `GET /api/v1/decisions`. Errors as for {@link readNodesQuery}. */
export const readDecisionsQuery = (query: Query): Result<RowsQuery, string> => readRows(query, ROWS_PARAMETERS);

/** Reads the query of `GET /api/v1/actions`. Errors as for {@link readNodesQuery}. */
export const readActionsQuery = (query: Query): Result<RowsQuery, string> => readRows(query, ACTIONS_PARAMETERS);

/** Reads the query of `GET /api/v1/orders`. Errors as for {@link readNodesQuery}. */
export const readOrdersQuery = (query: Query): Result<RowsQuery, string> => readRows(query, ORDERS_PARAMETERS);

/** Reads the query of `GET /api/v1/policies`: the policy that is asked for, or null. Errors as for {@link readNodesQuery}. */
export function readPoliciesQuery(query: Query): Result<string | null, string> {
  const given = readParameters(query, POLICIES_PARAMETERS);
  return given.ok ? ok(given.value.policy ?? null) : given;
}

/** Reads the query of `GET /api/v1/events`: the last event that was seen, or null. Errors as for {@link readNodesQuery}. */
export function readEventsQuery(query: Query): Result<string | null, string> {
  const given = readParameters(query, EVENTS_PARAMETERS);
  return given.ok ? ok(given.value.last_event_id ?? null) : given;
}

function readRows(query: Query, allowed: readonly Parameter[]): Result<RowsQuery, string> {
  const given = readParameters(query, allowed);
  if (!given.ok) return given;
  const { node, policy, until, limit, state } = given.value;
  return ok({
    ...(node === undefined ? {} : { node }),
    ...(policy === undefined ? {} : { policy }),
    ...(until === undefined ? {} : { until: Date.parse(until) }),
    limit: Number(limit ?? ROWS_DEFAULT),
    awaiting: state !== undefined,
  });
}

function readParameters(
  query: Query,
  allowed: readonly Parameter[],
): Result<Readonly<Partial<Record<Parameter, string>>>, string> {
  for (const [name, value] of Object.entries(query)) {
    const problem = parameterProblem(name, value, allowed);
    if (problem !== null) return fail(`parameter ${JSON.stringify(name.slice(0, TEXT_CHARS_MAX))}: ${problem}`);
  }
  return ok(query as Readonly<Partial<Record<Parameter, string>>>);
}

function parameterProblem(name: string, value: unknown, allowed: readonly Parameter[]): string | null {
  const parameter = allowed.find((known) => known === name);
  if (parameter === undefined) return `unknown; must be one of ${allowed.join(", ")}`;
  return typeof value === "string" ? PARAMETER_CHECKS[parameter](value) : "must be given only once";
}
