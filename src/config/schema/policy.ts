import { z } from "zod";
import { MINUTE_MS } from "../../base/duration.ts";
import { type ExternalBlocker, MODES } from "../../model/policy/policy.ts";
import {
  booleanFlag,
  camelKeys,
  duration,
  exactlyOneOf,
  expression,
  list,
  oneOf,
  rejectValue,
  section,
  text,
  wholeNumber,
} from "./value-types.ts";

/** A policy's name is a metric label and part of journal keys. */
const NAME_EXPECTED = "a name of at most 64 letters, digits, -, _ and . that begins with a letter or digit";
const NAME_PATTERN = /^[A-Za-z0-9][\w.-]{0,63}$/;
const POLICIES_MAX = 200;
const STEPS_MAX = 20;
const WINDOWS_MAX = 20;
const BLOCKED_BY_MAX = 20;
const MATCHERS_MAX = 20;
/** Maximum length of a reason. The service's limit is unknown, and longer reasons are not useful. */
const REASON_LENGTH_MAX = 500;

const verify = (within: string, otherwise: string) =>
  section({
    within: duration("1s", "1d")
      .prefault(within)
      .describe("Time after which the step ends, unless its result is not clear yet."),
    expect: expression()
      .exactOptional()
      .describe(
        `Condition that shows that the action took effect, and normally ends the step. By default: ${otherwise}.`,
      ),
  })
    .transform(({ within, expect = null }) => ({ withinMs: within, expect }))
    .prefault({})
    .describe("How the step is verified before the next one is taken.");

const steps = [
  section({
    action: z.literal("disconnect"),
    verify: verify("3m", "`when` no longer holds"),
  }).describe("Disconnects all sessions of the node."),
  section({
    action: z.literal("reboot"),
    force: booleanFlag().default(false).describe("Whether to force the reboot instead of rebooting gracefully."),
    verify: verify("10m", "`when` no longer holds, and the node is online and has reported since"),
  }).describe("Reboots the node."),
  section({
    action: z.literal("quarantine"),
    duration: duration("1m", "30d")
      .refine((value) => value % MINUTE_MS === 0, "must be whole minutes, such as 90m")
      .describe("Duration of the quarantine, such as `24h`; it must be a whole number of minutes."),
    reason: text("a text", { name: "string", check: "template" })
      .max(REASON_LENGTH_MAX, `must be at most ${REASON_LENGTH_MAX} characters long`)
      .default("{{policy}}: {{when}} ({{episode}})")
      .describe(
        "Reason that is sent to the service. `{{policy}}`, `{{when}}`, `{{episode}}` and `{{node}}` are replaced by the policy's name, its `when` expression, the episode's id and the node's id.",
      ),
    verify: verify("5m", "the node's status is quarantined"),
  }).describe("Quarantines the node."),
  section({
    action: z.literal("notify"),
    receiver: text("the name of a receiver", { name: "name of a receiver", check: "receiver" }).describe(
      "Name of the receiver.",
    ),
  }).describe("Notifies a receiver without acting on the node."),
] as const;

const MATCHER = 'an Alertmanager matcher, such as severity="critical"';
const MATCHER_PATTERN =
  /^\s*(?:[A-Za-z_:][\w:]*|"(?:[^"\\]|\\.)+")\s*(?:=~|!~|!=|=)\s*(?:"(?:[^"\\]|\\.)*"|[^\s"{}=~!,]+)\s*$/;

const blockedByEntry = exactlyOneOf(["query", "alerts"], {
  query: text("a PromQL query", { name: "PromQL", check: "query" })
    .exactOptional()
    .describe(
      "PromQL query for the server in `prometheus`. Blocks while its result is not empty; a scalar blocks unless it is 0.",
    ),
  alerts: list(text(MATCHER, { name: "matcher", check: "matcher" }, MATCHER_PATTERN), "matchers", MATCHERS_MAX)
    .min(1, "must have at least one matcher, because without one every alert would block")
    .exactOptional()
    .describe(
      "Matchers for alerts in `alertmanager`. Blocks while an alert that matches all of them fires and is neither silenced nor inhibited. Mutually exclusive with `query`.",
    ),
}).transform(
  ({ query, alerts = [] }): ExternalBlocker =>
    query === undefined ? { kind: "alerts", matchers: alerts } : { kind: "query", query },
);

/** Closed episodes stay in memory for 30 days, so a policy can't count older ones. */
const RETRY_MAX = "30d";

const retry = section({
  episodes: wholeNumber(0, 100).default(2).describe("Maximum number of episodes of a node within `forget_after`."),
  every: duration("1m", RETRY_MAX)
    .prefault("6h")
    .describe("Time from an episode that did not heal the node to the next one."),
  forget_after: duration("1m", RETRY_MAX).prefault("24h").describe("Time after which an episode no longer counts."),
})
  .transform((value, context) => {
    if (value.forget_after < value.every) {
      const expected = "must not be shorter than every, because then no episode would ever count";
      rejectValue(context, value.forget_after, expected, ["forget_after"]);
    }
    return camelKeys(value, "every", "forget_after");
  })
  .prefault({})
  .describe("How many times, and how far apart, a node is treated before the policy gives up on it and reports it.");

const policy = section({
  name: text(NAME_EXPECTED, { name: "name" }, NAME_PATTERN).describe(
    "Name of the policy, unique across all files: at most 64 letters, digits, `-`, `_` and `.`.",
  ),
  mode: oneOf(MODES).default("dry_run").describe("What the policy may do, limited by `safety.mode`."),
  match: expression().exactOptional().describe("Nodes that the policy applies to. Defaults to every node."),
  when: expression().describe(
    "Condition that makes a node unhealthy. It is unknown if a field that it needs is unknown or too old.",
  ),
  for: duration("0s", "365d").describe(
    "How long `when` must be observed to hold before the policy fires; with 0s it fires at the first observation. In a policy that reads node details, time is counted from one read of the details to the next.",
  ),
  clear_for: duration("0s", "365d")
    .prefault("10m")
    .describe("How long `when` must be observed not to hold before the episode ends."),
  max_age: duration("1s", "365d")
    .exactOptional()
    .describe(
      "Maximum age of the data that the expressions read; older data is unknown. `check` warns if the data is read less often. Defaults to the time for which data from each source counts as fresh, usually three planned intervals (`proxywarden_plan_fresh_seconds`).",
    ),
  steps: list(
    z
      .discriminatedUnion("action", steps, { error: "must be a step with an action" })
      .transform((step) => (step.action === "quarantine" ? camelKeys(step, "duration") : step)),
    "steps",
    STEPS_MAX,
  )
    .min(1, "must have at least one step")
    .describe("Steps, in order. Each is verified by observation before the next one is taken."),
  retry,
  windows: list(
    text("the name of a time interval", { name: "name of a time interval", check: "window" }),
    "names from time_intervals",
    WINDOWS_MAX,
  )
    .default([])
    .describe("Time intervals in which the policy may act. If empty, it may always act."),
  blocked_by: list(blockedByEntry, "mappings with query or alerts", BLOCKED_BY_MAX)
    .prefault([])
    .describe(
      "Prometheus queries and alerts that block the policy's actions. They also block while Prometheus or Alertmanager can't be queried.",
    ),
}).transform(({ name, mode, match = null, when, for: firesAfter, clear_for, max_age = null, ...rest }) => {
  // The order of the keys is part of the fingerprint by which a changed policy is recognized.
  const inOrder = { name, mode, match, when, for: firesAfter, clear_for, max_age, ...rest };
  return camelKeys(inOrder, "for", "clear_for", "max_age");
});

/** A policy. Without `match` it applies to every node, and without `maxAgeMs` the plan decides how long data is fresh. */
export type PolicySpec = z.output<typeof policy>;
/** A step of a policy. */
export type Step = PolicySpec["steps"][number];
/** How a step is verified. Without `expect` the default of the action applies. */
export type StepVerification = z.output<ReturnType<typeof verify>>;

/** A policy file. */
export const policyFileSchema = section({
  policies: list(policy, "policies", POLICIES_MAX).describe("Policies. If several fire on a node, the first one acts."),
});
