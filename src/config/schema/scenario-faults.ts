import { z } from "zod";
import type { Fault, FaultKind } from "../../model/scenario.ts";
import { camelKeys } from "./camel-keys.ts";
import { meaningOf } from "./introspection.ts";
import {
  booleanFlag,
  duration,
  oneOf,
  rejectValue,
  section,
  share,
  signedDuration,
  text,
  wholeNumber,
} from "./value-types.ts";

const MATCH_EXPECTED = "a method, the beginning of a path, or both, such as GET /v1/nodes";
const RETRY_AFTER_EXPECTED = "a number of seconds, or an HTTP-date in quotes";
const LOCATION_EXPECTED = "the URL of a Location header, of visible ASCII characters";

/** Keys that every fault has. */
const timingKeys = {
  after: duration("0s", "365d").prefault("0s").describe("When it begins, from the start of the simulation."),
  for: duration("1ms", "365d").describe("How long it lasts."),
};

/** Keys of the faults that hit requests. */
const matchKeys = {
  match: text(MATCH_EXPECTED, { name: "string" })
    .regex(/^(?:(?:GET|POST) )?\/\S*$|^(?:GET|POST)$/, `must be ${MATCH_EXPECTED}`)
    .exactOptional()
    .describe(
      "The requests that it hits: a method, the beginning of a path, or both, as in `GET /v1/nodes`; with `?` at its end, the list alone. Unset: every request. Not for `region_dark` and `clock_skew`, which hit no requests.",
    ),
  share: share(0, 100)
    .exactOptional()
    .describe("Share of those requests that it hits. Unset: all of them. Not for `region_dark` and `clock_skew`."),
};

/** Keys that faults share. */
const sharedKeys = { ...timingKeys, ...matchKeys };

/** One kind of fault that hits requests: what all of them have, and what it needs beside. */
function requestFault<const Name extends FaultKind["kind"], const Shape extends z.core.$ZodShape>(
  kind: Name,
  meaning: string,
  shape: Shape,
) {
  return section({ kind: z.literal(kind), ...sharedKeys, ...shape }).describe(meaning);
}

/** Defines a fault of the network or the clock, which applies to all requests. */
function networkFault<const Name extends FaultKind["kind"], const Shape extends z.core.$ZodShape>(
  kind: Name,
  meaning: string,
  shape: Shape,
) {
  return section({ kind: z.literal(kind), ...timingKeys, ...shape }).describe(meaning);
}

const secondsOrDate = text(RETRY_AFTER_EXPECTED, { name: "string" }).regex(
  /^[\x20-\x7e]*$/,
  `must be ${RETRY_AFTER_EXPECTED}, in ASCII`,
);

const HEADER_EXPECTED = "the value of a header, of printable ASCII characters";
const headerText = () =>
  text(HEADER_EXPECTED, { name: "string" })
    .regex(/^[\x20-\x7e]*$/, `must be ${HEADER_EXPECTED}`)
    .exactOptional();

const faults = [
  requestFault("status", "Answers with an error status.", {
    status: wholeNumber(200, 599).describe("The status."),
    retry_after: z
      .union([wholeNumber(0, 86_400), secondsOrDate], { error: `must be ${RETRY_AFTER_EXPECTED}` })
      .transform(String)
      .exactOptional()
      .describe("The Retry-After header: seconds, or an HTTP-date."),
    retry_after_date: duration("0s", "365d")
      .exactOptional()
      .describe("The Retry-After header as an HTTP-date so much later than the answer. Instead of `retry_after`."),
    bare: booleanFlag()
      .exactOptional()
      .describe(
        "Whether a gateway in front of the service answers: without X-RateLimit headers, and without counting the request. Unset: false.",
      ),
  }),
  requestFault(
    "gateway_limit",
    "Limits requests in a gateway in front of the service: its 429 has no X-RateLimit headers.",
    {
      requests_per_minute: wholeNumber(1, 1_000_000).describe("Requests that it lets through a minute."),
      burst: wholeNumber(1, 1_000_000).describe("Requests that it lets through at once, after a rest."),
      retry_after: wholeNumber(0, 86_400)
        .exactOptional()
        .describe("Seconds in the Retry-After header of its 429. Unset: no such header."),
    },
  ),
  requestFault("limit_headers", "States these X-RateLimit headers, as they stand, in place of the true ones.", {
    limit: headerText().describe("X-RateLimit-Limit. Unset: the true one."),
    remaining: headerText().describe("X-RateLimit-Remaining. Unset: the true one."),
    reset: headerText().describe("X-RateLimit-Reset. Unset: the true one."),
  }),
  requestFault("hang", "Accepts the request and never answers.", {}),
  requestFault("reset", "Breaks the connection before a byte of the answer.", {}),
  requestFault("truncate", "Breaks the connection in the middle of the body.", {}),
  requestFault("bad_json", "Answers 200 with a body that is no JSON.", {}),
  requestFault("html", "Answers 200 with an HTML page, as a proxy in between would.", {}),
  requestFault("wrong_shape", "Answers 200 with JSON of another shape than the interface's.", {}),
  requestFault(
    "bad_records",
    "Spoils records of a list: an unknown status, a number out of range, no id, an awkward name or timestamp.",
    {
      spoiled: share(0, 100).describe("Share of the records that are spoiled."),
    },
  ),
  requestFault(
    "many_labels",
    "Gives the records of a list, and the top lists of the statistics, many countries, regions, nodes and customers.",
    { values: wholeNumber(1, 10_000_000).describe("Different values of each label.") },
  ),
  requestFault("slow_drip", "Sends the body slowly.", {
    bytes_per_second: wholeNumber(1, 1_000_000).describe("Bytes of the body that are sent a second."),
  }),
  requestFault("huge_body", "Answers 200 with a body that is far too large.", {
    bytes: wholeNumber(1, 1_000_000_000).describe("Size of the body."),
  }),
  requestFault("redirect", "Redirects to another place.", {
    location: text(LOCATION_EXPECTED, { name: "string" })
      .regex(/^[\x21-\x7e]*$/, `must be ${LOCATION_EXPECTED}`)
      .describe("The Location header."),
  }),
  requestFault("lost_reply", "Does what the request asks, then breaks the connection.", {}),
  requestFault(
    "vanished",
    "Leaves a share of the records out of the lists. A node that is left out is not found by its id either, unless `match` names the list alone: `GET /v1/nodes?`.",
    {
      missing: share(0, 100).describe("Share of the records that are missing."),
    },
  ),
  requestFault("empty_list", "Lists nothing, and says that the total is 0.", {}),
  requestFault(
    "duplicates",
    "Lists records twice: the first ones again at the end of the list, and counts them in its total.",
    {
      records: wholeNumber(1, 10_000).describe("How many are listed twice."),
    },
  ),
  requestFault("page_ignored", "Answers every page of a list with the records of the first page.", {
    states: oneOf(["requested", "first"])
      .default("requested")
      .describe("The page number that the answer states: the one asked for, or that of the first page."),
  }),
  requestFault("bad_details", "Makes the details of a share of the nodes unreadable, always those of the same nodes.", {
    nodes: share(0, 100).describe("Share of the nodes."),
    answer: oneOf(["not_found", "unreadable", "server_error"]).describe(
      "What a read of such a node gets: 404, 200 without a usable field, or 500.",
    ),
  }),
  requestFault("stale_last_seen", "Stops every node's last_seen, as a broken health checker would.", {}),
  networkFault("region_dark", "Takes every node of a region offline.", {
    region: text("the name of a region", { name: "string" }).describe("The region."),
  }),
  networkFault("clock_skew", "Shifts the service's clock: its Date header and every timestamp.", {
    skew: signedDuration().describe("By how much; `-90s` is behind."),
  }),
] as const;

/** One entry of the fault script. */
export const faultSchema = z
  .discriminatedUnion("kind", faults, { error: "must be a mapping with the keys kind, for and those of the kind" })
  .transform((entry, context): Fault => {
    if (entry.kind === "status" && entry.retry_after !== undefined && entry.retry_after_date !== undefined) {
      return rejectValue(context, entry, "must have retry_after or retry_after_date, not both");
    }
    const fault = { afterMs: entry.after, forMs: entry.for, fault: toFaultKind(entry) };
    if (entry.kind === "region_dark" || entry.kind === "clock_skew") return fault;
    const matched = entry.match === undefined ? fault : { ...fault, match: entry.match };
    return entry.share === undefined ? matched : { ...matched, share: entry.share };
  });

/** The kinds of faults for the reference: the keys they share, and what each is and has beside. */
export function faultAlternatives() {
  const kinds = faults.map((fault) => {
    const keys = Object.entries(fault.shape).filter(([key]) => key !== "kind" && !Object.hasOwn(sharedKeys, key));
    const [name] = fault.shape.kind.values;
    return { name: String(name), meaning: meaningOf(fault), keys: Object.fromEntries(keys) };
  });
  return { common: sharedKeys, kinds };
}

/** What a fault does, without when and where. */
function toFaultKind(entry: z.output<(typeof faults)[number]>): FaultKind {
  if (entry.kind === "region_dark") return { kind: entry.kind, region: entry.region };
  if (entry.kind === "clock_skew") return { kind: entry.kind, skewMs: entry.skew };
  const { after: _after, for: _for, match: _match, share: _share, ...own } = entry;
  switch (own.kind) {
    case "status":
      return camelKeys(own, "retry_after_date");
    case "gateway_limit": {
      const { retry_after, ...limit } = own;
      return { ...camelKeys(limit), ...(retry_after === undefined ? {} : { retryAfterSeconds: retry_after }) };
    }
    case "slow_drip":
      return camelKeys(own);
    case "bad_records":
      return { kind: own.kind, share: own.spoiled };
    case "vanished":
      return { kind: own.kind, share: own.missing };
    case "bad_details":
      return { kind: own.kind, share: own.nodes, answer: own.answer };
    default:
      return own;
  }
}
