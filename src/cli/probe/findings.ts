import { parseRateLimitHeaders } from "../../api-client/rate-limit-headers.ts";
import type { Config } from "../../config/schema/config.ts";
import { RATIO_MAX } from "../../inventory/usage-scale.ts";
import { CATEGORIES } from "../../rate-limit/limits.ts";
import { countNoun } from "../../web/ui/page/format.ts";
import {
  isPage,
  mayHaveMore,
  type ProbedCall,
  type ProbedPage,
  type ServiceObservation,
  sharesRecords,
} from "./service-probe.ts";

/** What a probe found about one property of the service. */
export interface Finding extends Answer {
  readonly about: string;
}

/** What the responses show. */
interface Answer {
  /** Null if it can't be determined. */
  readonly value: unknown;
  /** Whether the responses prove the value. */
  readonly certain: boolean;
  readonly text: string;
  /** Whether the daemon can't work as configured. */
  readonly problem?: boolean;
}

/** Returns a finding about each property that the API documentation leaves open, compared with the configuration. */
export const findingsOf = (observed: ServiceObservation, config: Config): readonly Finding[] => [
  { about: "scopes", ...scopesOf(observed) },
  { about: "usage_scale", ...usageScaleOf(observed, config.service.usage_scale) },
  { about: "page_limit", ...pageLimitOf(observed, config.service.page_limit) },
  { about: "first_page", ...firstPageOf(observed) },
  { about: "limits", ...limitsOf(observed, config) },
  { about: "headers", ...headersOf(observed) },
];

const unknown = (text: string): Answer => ({ value: null, certain: false, text });
const proved = (value: unknown, text: string): Answer => ({ value, certain: true, text });

const READ_SCOPES = ["nodes:read", "sessions:read"] as const;
const WRITE_NOTE = "nodes:write can't be determined without an action";

function scopesOf({ calls }: ServiceObservation): Answer {
  if (calls.some(({ status }) => status === 401))
    return { ...unknown("401: the service does not accept the API key"), problem: true };
  const failed = calls.find(({ status }) => status === null);
  if (failed !== undefined && calls.every(({ status }) => status === null))
    return { ...unknown(`can't be determined: ${failed.error!}`), problem: true };
  const callsOf = (scope: string) => calls.filter((call) => call.scope === scope);
  const granted = READ_SCOPES.filter((scope) => callsOf(scope).some(isSuccess));
  const denied = READ_SCOPES.filter((scope) => callsOf(scope).some(({ status }) => status === 403));
  const others = READ_SCOPES.filter((scope) => !granted.includes(scope) && !denied.includes(scope));
  const parts = [
    ...(granted.length > 0 ? [granted.join(", ")] : []),
    ...denied.map((scope) => `${scope} is missing (403)`),
    ...others.map((scope) => `${scope} can't be determined: ${describeCall(callsOf(scope).at(-1) ?? failed)}`),
    ...(calls.every(isFromOtherServer) ? ["check service.base_url"] : []),
    WRITE_NOTE,
  ];
  const value = Object.fromEntries([
    ...READ_SCOPES.map((scope) => [scope, granted.includes(scope) ? true : denied.includes(scope) ? false : null]),
    ["nodes:write", null],
  ]);
  const problem = !granted.includes("nodes:read");
  return { value, certain: others.length === 0, text: parts.join("; "), problem };
}

const isSuccess = ({ status, error }: ProbedCall): boolean =>
  status !== null && status >= 200 && status < 300 && error === null;

/** Returns whether a response seems to be from a server that is not the service: a 404, or a 2xx that can't be read. */
const isFromOtherServer = ({ status, error }: ProbedCall): boolean =>
  status === 404 || (status !== null && error !== null);

function describeCall(call: ProbedCall | undefined): string {
  if (call === undefined) return "no request was sent";
  const { path, status, error } = call;
  const endpoint = path.replace(/\?.*/, "");
  return error === null ? `the service answered ${status} to GET ${endpoint}` : `GET ${endpoint}: ${error}`;
}

function usageScaleOf({ details }: ServiceObservation, configured: "ratio" | "percent" | undefined): Answer {
  const usages = details.flatMap(({ cpuUsage, memoryUsage, diskUsage }) =>
    [cpuUsage, memoryUsage, diskUsage].filter((usage) => usage !== null),
  );
  const highest = Math.max(0, ...usages);
  const nodes = countNoun(details.length, "node");
  if (details.length === 0) return unknown("can't be determined: no node could be read");
  if (highest === 0) return unknown(`can't be determined: ${nodes} read, none with a usage above 0`);
  if (highest > RATIO_MAX) {
    const seen = `a node has a usage of ${highest}, which is not a ratio`;
    if (configured === "percent") return proved("percent", `percent, as configured: ${seen}`);
    if (configured === undefined) return proved("percent", `percent: ${seen}; set service.usage_scale: percent`);
    const text = `percent: ${seen}, but service.usage_scale is ratio, so all usage would be unknown; set it to percent`;
    return { ...proved("percent", text), problem: true };
  }
  if (highest > 1) {
    const either = "it may be the ratio of an overloaded node, or a percentage of an idle one";
    return unknown(`can't be determined: the highest usage of ${nodes} is ${highest}; ${either}`);
  }
  const reason = `no usage of the ${nodes} read is above 1, so ratio and percent can't be told apart for certain; as percent, none of them would use more than 1%`;
  const advice = {
    ratio: "",
    percent: "; service.usage_scale is percent",
    unset: "; set service.usage_scale: ratio unless your nodes are that idle",
  }[configured ?? "unset"];
  return { value: "ratio", certain: false, text: `ratio, most likely: ${reason}${advice}` };
}

function pageLimitOf({ nodes, sessions }: ServiceObservation, requested: number): Answer {
  if (nodes === null) return unknown("can't be determined: no page of nodes could be read");
  const shown = [nodes, ...(sessions === null ? [] : [sessions])].map(fullPageOf).filter((size) => size !== null);
  const rejected = nodes.limit < requested ? `a limit of ${requested} is rejected with a 4xx; ` : "";
  if (shown.length === 0) {
    const fits = `${countNoun(nodes.page.total, "node")}, and a page may have ${nodes.limit}, so the largest page can't be determined`;
    return { ...unknown(`${rejected}${fits}`), value: rejected === "" ? null : nodes.limit };
  }
  const size = Math.min(...shown);
  const text =
    size < nodes.limit
      ? `${size}: ${nodes.limit} were requested, and the service returns fewer`
      : `${size}, as requested`;
  return proved(size, `${rejected}${text}`);
}

/** Returns the size of a page, or null if it is empty, or if it is not full because the list ends on it. */
const fullPageOf = ({ limit, page: { records, total } }: ProbedPage): number | null =>
  records.length > 0 && (records.length < total || records.length === limit) ? records.length : null;

function firstPageOf({ nodes, pageZero, pageTwo }: ServiceObservation): Answer {
  const is = (value: 0 | 1, text: string) => proved(value, `${value}: ${text}`);
  if (nodes === null) return unknown("can't be determined: no page of nodes could be read");
  const { records, total } = nodes.page;
  if (total === 0 && records.length === 0) return unknown("can't be determined: the fleet has no nodes");
  if (!mayHaveMore(nodes)) return is(1, "page 1 has all nodes");
  if (pageZero === "rejected") return is(1, "page 0 is rejected with a 4xx");
  if (!isPage(pageZero)) return unknown("can't be determined: page 0 could not be read");
  if (pageZero.records.length === 0) return is(1, "page 0 is empty");
  if (!sharesRecords(pageZero, nodes.page)) return is(0, "page 0 has nodes that page 1 does not have");
  if (pageTwo === null) return unknown("can't be determined: pages 0 and 1 are the same, and page 2 could not be read");
  return sharesRecords(pageTwo, nodes.page)
    ? unknown("can't be determined: every page number returns the same nodes")
    : is(1, "page 0 is answered with page 1");
}

const UNSTATED =
  "burst, concurrent requests and calls per month are not stated in any response: limits must match your contract";

function limitsOf({ calls }: ServiceObservation, { limits }: Config): Answer {
  const readings = CATEGORIES.flatMap((category) => {
    const last = calls.findLast((call) => call.category === category && readingOf(call) !== null);
    return last === undefined ? [] : [{ category, ...readingOf(last)! }];
  });
  if (readings.length === 0) return unknown("no response states any limit: limits must match your contract");
  const texts = readings.map(({ category, limit, remaining }) => {
    const configured = limits[category].requests;
    const note = limit === configured ? "as configured" : `limits.${category}.requests is ${configured}`;
    return `${category} ${limit} (${note}), ${remaining} left`;
  });
  const value = Object.fromEntries(readings.map(({ category, limit, remaining }) => [category, { limit, remaining }]));
  const certain = readings.length === CATEGORIES.length;
  return { value, certain, text: `${texts.join("; ")}; ${UNSTATED}` };
}

const readingOf = ({ headers }: ProbedCall) => parseRateLimitHeaders(headers, 0);

const HEADERS = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "date"] as const;

function headersOf({ calls }: ServiceObservation): Answer {
  // A gateway in front of the service may send errors without its headers.
  const succeeded = calls.filter(isSuccess);
  if (succeeded.length === 0) return unknown("can't be determined: no call succeeded");
  const present = HEADERS.filter((name) => succeeded.every(({ headers }) => name in headers));
  const missing = HEADERS.filter((name) => !present.includes(name));
  const effects = [
    ...(missing.includes("x-ratelimit-limit") || missing.includes("x-ratelimit-remaining")
      ? ["without X-RateLimit-Limit and X-RateLimit-Remaining, calls are spaced evenly"]
      : []),
    ...(missing.includes("date") ? ["without Date, the service's clock is unknown, and no action is taken"] : []),
  ];
  const text = [
    present.length === 0 ? "none of the documented headers" : present.join(", "),
    ...(missing.length === 0 ? [] : [`missing: ${missing.join(", ")}`, ...effects]),
  ].join("; ");
  return { ...proved(present, text), problem: missing.includes("date") };
}
