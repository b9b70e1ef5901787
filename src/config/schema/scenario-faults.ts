import { z } from "zod";
import type { Share } from "../../base/percent.ts";
import {
  booleanFlag,
  camelKeys,
  duration,
  oneOf,
  rejectValue,
  section,
  share,
  signedDuration,
  text,
  wholeNumber,
} from "./value-types.ts";

const MATCH_PATTERN = /^(?:(?:GET|POST) )?\/(?:v1(?:\/(?:(?:nodes|sessions)(?:[/?]\S*)?)?)?)?$|^(?:GET|POST)$/;
const PRINTABLE_PATTERN = /^[\x20-\x7e]*$/;
const RETRY_AFTER_EXPECTED = "a number of seconds, or an HTTP-date in quotes";

/** Keys of every fault. */
const timingKeys = {
  after: duration("0s", "365d")
    .prefault("0s")
    .describe("Time from the start of the simulation until the fault begins."),
  for: duration("1ms", "365d").describe("Duration of the fault."),
};

/** Keys of the faults that affect requests. */
export const sharedKeys = {
  ...timingKeys,
  match: text(
    "a method, the beginning of a path of the API, or both, such as GET /v1/nodes",
    { name: "string" },
    MATCH_PATTERN,
  )
    .exactOptional()
    .describe(
      "Requests that the fault affects: a method, the beginning of a path, or both, as in `GET /v1/nodes`; with a trailing `?`, only the list. Defaults to every request. Not for `region_dark` and `clock_skew`.",
    ),
  share: share(100)
    .exactOptional()
    .describe(
      "Share of those requests that the fault affects. Defaults to all of them. Not for `region_dark` and `clock_skew`.",
    ),
};

/** Returns a function that defines a kind of fault, which has the given keys and its own. */
const faultWith =
  <const Keys extends z.core.$ZodShape>(keys: Keys) =>
  <const Name extends string, const Shape extends z.core.$ZodShape>(kind: Name, meaning: string, shape: Shape) =>
    section({ kind: z.literal(kind), ...keys, ...shape }).describe(meaning);

const requestFault = faultWith(sharedKeys);
const networkFault = faultWith(timingKeys);

const secondsOrDate = text(RETRY_AFTER_EXPECTED).regex(PRINTABLE_PATTERN, `must be ${RETRY_AFTER_EXPECTED}, in ASCII`);

const headerText = () =>
  text("the value of a header, of printable ASCII characters", { name: "string" }, PRINTABLE_PATTERN).exactOptional();

const faults = [
  requestFault("status", "Responds with a status.", {
    status: wholeNumber(200, 599).describe("HTTP status."),
    retry_after: z
      .union([wholeNumber(0, 86_400), secondsOrDate], { error: `must be ${RETRY_AFTER_EXPECTED}` })
      .transform(String)
      .exactOptional()
      .describe("Retry-After header: seconds, or an HTTP-date."),
    retry_after_date: duration("0s", "365d")
      .exactOptional()
      .describe(
        "Retry-After header as an HTTP-date this long after the response. Mutually exclusive with `retry_after`.",
      ),
    bare: booleanFlag()
      .exactOptional()
      .describe(
        "Whether a gateway in front of the service responds, without X-RateLimit headers and without counting the request. Defaults to false.",
      ),
    executed: booleanFlag()
      .exactOptional()
      .describe("Whether the service executes the request first. Defaults to false. Not with `bare`."),
  }),
  requestFault(
    "gateway_limit",
    "Simulates a gateway in front of the service that limits requests. The gateway's 429 has no X-RateLimit headers.",
    {
      requests_per_minute: wholeNumber(1, 1_000_000).describe("Requests per minute that it lets through."),
      burst: wholeNumber(1, 1_000_000).describe("Number of requests that it lets through at once."),
      retry_after: wholeNumber(0, 86_400)
        .exactOptional()
        .describe("Seconds in the Retry-After header of its 429. By default there is no header."),
    },
  ),
  requestFault("limit_headers", "Replaces X-RateLimit headers.", {
    limit: headerText().describe("X-RateLimit-Limit. Defaults to the correct value."),
    remaining: headerText().describe("X-RateLimit-Remaining. Defaults to the correct value."),
    reset: headerText().describe("X-RateLimit-Reset. Defaults to the correct value."),
  }),
  requestFault(
    "wrong_date",
    "Shifts only the Date header, as a gateway or one of several servers with a wrong clock might.",
    { offset: signedDuration().describe("Offset; `-90s` is a date in the past.") },
  ),
  requestFault(
    "hang",
    "Accepts the request and never responds. The service works on it for a minute, even if the client disconnects.",
    {},
  ),
  requestFault("reset", "Breaks the connection before the response.", {}),
  requestFault("truncate", "Breaks the connection in the middle of the body.", {}),
  requestFault("bad_json", "Makes the body invalid JSON.", {}),
  requestFault("html", "Responds 200 with an HTML page, as a proxy might.", {}),
  requestFault("unsuccessful", "Responds 200 with `success: false`, without executing the request.", {}),
  requestFault("wrong_shape", "Replaces the body with JSON of the wrong shape.", {}),
  requestFault(
    "bad_records",
    "Makes records of a list invalid: an unknown status, a number out of range, no id, an unusual name or timestamp.",
    {
      spoiled: share(100).describe("Share of the records that are invalid."),
    },
  ),
  requestFault(
    "many_labels",
    "Puts many countries, regions, nodes and customers into the records of a list, and many countries and protocols into the statistics.",
    { values: wholeNumber(1, 10_000_000).describe("Number of different values of each label.") },
  ),
  requestFault("slow_drip", "Sends the body slowly.", {
    bytes_per_second: wholeNumber(1, 1_000_000).describe("Bytes of the body per second."),
  }),
  requestFault("huge_body", "Pads the body with spaces until it is too large.", {
    bytes: wholeNumber(1, 1_000_000_000).describe("Size of the padded body."),
  }),
  requestFault("redirect", "Redirects to another URL.", {
    location: text(
      "the URL of a Location header, of visible ASCII characters",
      { name: "string" },
      /^[\x21-\x7e]*$/,
    ).describe("Location header."),
  }),
  requestFault("lost_reply", "Executes the request, then breaks the connection.", {}),
  requestFault(
    "vanished",
    "Leaves a share of the records out of the lists. A node that is left out is not found by its id either, unless `match` covers only the list: `GET /v1/nodes?`.",
    {
      missing: share(100).describe("Share of the records that are missing."),
    },
  ),
  requestFault("empty_list", "Returns empty lists with a total of 0.", {}),
  requestFault("duplicates", "Repeats the first records at the end of the list and counts them in its total.", {
    records: wholeNumber(1, 10_000).describe("Number of repeated records."),
    new_ids: booleanFlag()
      .exactOptional()
      .describe(
        "Whether the repeated records have ids of their own, which a read by id does not find. Defaults to false.",
      ),
  }),
  requestFault("page_ignored", "Responds to a request for any page with the records of the first page.", {
    states: oneOf(["requested", "first"])
      .default("requested")
      .describe("Page number in the response: the requested one, or that of the first page."),
  }),
  requestFault("bad_details", "Makes the details of a share of the nodes unreadable. The nodes are always the same.", {
    nodes: share(100).describe("Share of the nodes."),
    answer: oneOf(["not_found", "unreadable", "server_error"]).describe(
      "Response to a read of such a node: 404, 200 without a usable field, or 500.",
    ),
  }),
  requestFault("stale_last_seen", "Freezes last_seen of every node, as a broken health checker might.", {}),
  requestFault("cached", "Serves the bodies of GETs from a cache, with current headers, as a gateway might.", {
    max_age: duration("1s", "1d").describe("How long the cache keeps a body."),
  }),
  networkFault("region_dark", "Takes every node of a region offline.", {
    region: text("the name of a region").describe("Region."),
  }),
  networkFault("clock_skew", "Shifts the service's clock: its Date header and every timestamp.", {
    skew: signedDuration().describe("Offset; `-90s` sets the clock back."),
  }),
] as const;

/** One fault of a scenario. */
export const faultSchema = z
  .discriminatedUnion("kind", faults, { error: "must be a mapping with the keys kind, for and those of the kind" })
  .transform((entry, context) => {
    if (entry.kind === "status" && entry.retry_after !== undefined && entry.retry_after_date !== undefined) {
      return rejectValue(context, entry, "must have retry_after or retry_after_date, not both");
    }
    if (entry.kind === "status" && entry.bare === true && entry.executed === true)
      return rejectValue(context, entry, "must not have both bare and executed");
    // Faults of the network and the clock have neither `match` nor `share`.
    const { after, for: forMs, match, share, ...own }: typeof entry & { match?: string; share?: Share } = entry;
    return {
      afterMs: after,
      forMs,
      fault: camelKeys(own, "retry_after_date", "offset", "skew", "max_age"),
      ...(match === undefined ? {} : { match }),
      ...(share === undefined ? {} : { share }),
    };
  });
