import { z } from "zod";
import { MINUTE_MS } from "../../base/duration.ts";
import { type ExternalBlocker, MODES, type PolicyRule, type Step } from "../../model/policy/policy.ts";
import { camelKeys } from "./camel-keys.ts";
import { meaningOf } from "./introspection.ts";
import {
  booleanFlag,
  duration,
  exactlyOneOf,
  expression,
  list,
  nonBlankText,
  oneOf,
  section,
  text,
  wholeNumber,
} from "./value-types.ts";

/** A policy's name is a label of metrics, and part of many keys of the journal. */
const NAME_EXPECTED = "must be a name of at most 64 letters, digits, -, _ and ., the first a letter or a digit";
const NAME_PATTERN = /^[A-Za-z0-9][\w.-]{0,63}$/;
const POLICIES_MAX = 200;
const STEPS_MAX = 20;
const WINDOWS_MAX = 20;
const BLOCKED_BY_MAX = 20;
const MATCHERS_MAX = 20;
/** The service's limit is unknown; longer reasons are not useful. */
const REASON_LENGTH_MAX = 500;

const verify = (within: string, otherwise: string) =>
  section({
    within: duration("1s", "1d").prefault(within).describe("Time after which the step ends."),
    expect: expression()
      .exactOptional()
      .describe(`What shows that the step worked: as soon as it holds, the step ends. Unset: ${otherwise}.`),
  })
    .transform(({ within, expect = null }) => ({ withinMs: within, expect }))
    .prefault({})
    .describe("How the step is verified before the next one is taken.");

const steps = [
  section({
    action: z.literal("disconnect"),
    verify: verify("3m", "the step ends as soon as `when` no longer holds"),
  }).describe("Disconnects all sessions of the node."),
  section({
    action: z.literal("reboot"),
    force: booleanFlag().default(false).describe("Whether it is forced, not graceful."),
    verify: verify("10m", "`when` no longer holds, and the node is online"),
  }).describe("Reboots the node."),
  section({
    action: z.literal("quarantine"),
    duration: duration("1m", "30d")
      .refine((value) => value % MINUTE_MS === 0, "must be whole minutes, such as 90m")
      .describe("How long it lasts, in whole minutes."),
    reason: nonBlankText("a text", { name: "string", check: "template" })
      .max(REASON_LENGTH_MAX, `must be at most ${REASON_LENGTH_MAX} characters long`)
      .default("{{policy}}: {{when}} ({{episode}})")
      .describe(
        "What the service is told. `{{policy}}`, `{{when}}`, `{{episode}}` and `{{node}}` stand for the policy's name, its expression, the episode and the node's id.",
      ),
    verify: verify("5m", "the node's status is quarantined"),
  }).describe("Takes the node out of service for a time."),
  section({
    action: z.literal("notify"),
    receiver: nonBlankText("the name of a receiver", { name: "name of a receiver", check: "receiver" }).describe(
      "Who is told.",
    ),
  }).describe("Notifies a receiver; nothing is done to the node."),
] as const;

const MATCHER = `an Alertmanager matcher, such as severity="critical"`;
const MATCHER_PATTERN =
  /^\s*(?:[A-Za-z_:][\w:]*|"(?:[^"\\]|\\.)+")\s*(?:=~|!~|!=|=)\s*(?:"(?:[^"\\]|\\.)*"|[^\s"{}=~!,]+)\s*$/;

const blockedByEntry = exactlyOneOf(
  section({
    query: nonBlankText("a PromQL query", { name: "PromQL", check: "query" })
      .exactOptional()
      .describe("Blocks while this query of `prometheus` gives anything."),
    alerts: list(
      text(MATCHER, { name: "matcher", check: "matcher" }).regex(MATCHER_PATTERN, `must be ${MATCHER}`),
      "matchers",
      MATCHERS_MAX,
    )
      .min(1, "must have at least one matcher: without one, every alert would block")
      .exactOptional()
      .describe("Blocks while an alert of `alertmanager` fires that all these matchers fit. Instead of `query`."),
  }),
  "query",
  "alerts",
).transform(
  ({ query, alerts = [] }): ExternalBlocker =>
    query === undefined ? { kind: "alerts", matchers: alerts } : { kind: "query", query },
);

const retry = section({
  episodes: wholeNumber(0, 100).default(2).describe("Episodes that a node may have within `forget_after`."),
  every: duration("1m", "365d").prefault("6h").describe("Time from one that did not heal it to the next."),
  forget_after: duration("1m", "365d").prefault("24h").describe("Time after which an episode no longer counts."),
})
  .transform((value, context) => {
    if (value.forget_after < value.every) {
      const message = "must not be shorter than every: what is forgotten before the next episode is never counted";
      context.issues.push({ code: "custom", message, path: ["forget_after"], input: value.forget_after });
    }
    return camelKeys(value, "every", "forget_after");
  })
  .prefault({})
  .describe("How often a node is treated; after that it is given up and reported.");

function toStep(step: z.output<(typeof steps)[number]>): Step {
  if (step.action !== "quarantine") return step;
  const { action, duration, reason, verify } = step;
  return { action, durationMs: duration, reason, verify };
}

const policySection = section({
  name: text("a name", { name: "name" })
    .regex(NAME_PATTERN, NAME_EXPECTED)
    .describe("Name, unique among all files: at most 64 letters, digits, `-`, `_` and `.`."),
  mode: oneOf(MODES).default("dry_run").describe("How far it may go; never above `safety.mode`."),
  match: expression()
    .exactOptional()
    .describe("Nodes that the policy applies to. Unset: every node; an empty one is an error."),
  when: expression().describe("What is wrong with a node. Where a field that it reads is unknown or old, so is it."),
  for: duration("0s", "365d").describe(
    "How long it must have been seen to hold before the policy fires; 0s: as soon as it is seen. Of a policy that reads details it counts from one detail read to the next.",
  ),
  clear_for: duration("0s", "365d")
    .prefault("10m")
    .describe("How long it must have been seen not to hold before the episode is over."),
  max_age: duration("1s", "365d")
    .exactOptional()
    .describe(
      "Oldest datum that the expressions may read. Unset: as long as data of each source count as fresh, mostly three planned intervals (proxywarden_plan_fresh_seconds).",
    ),
  steps: list(
    z.discriminatedUnion("action", steps, { error: "must be a step with an action" }).transform(toStep),
    "steps",
    STEPS_MAX,
  )
    .min(1, "must have at least one step")
    .describe("The steps, in order: each is verified by observation before the next one is taken."),
  retry,
  windows: list(
    nonBlankText("the name of a time interval", { name: "name of a time interval", check: "window" }),
    "names out of time_intervals",
    WINDOWS_MAX,
  )
    .default([])
    .describe("Time intervals in which it may act. None: always."),
  blocked_by: list(blockedByEntry, "mappings with query or alerts", BLOCKED_BY_MAX)
    .prefault([])
    .describe("What blocks its actions. A query or alert that can't be read blocks as well."),
});

const policy = policySection.transform(({ for: forMs, match = null, max_age = null, ...rest }): PolicyRule => {
  const { name, mode, when, clear_for, steps, retry, windows, blocked_by: blockedBy } = rest;
  return {
    ...{ name, mode, match, when, forMs, clearForMs: clear_for, maxAgeMs: max_age },
    ...{ steps, retry, windows, blockedBy },
  };
});

/** A policy file. */
export const policyFileSchema = section({
  policies: list(policy, "policies", POLICIES_MAX).describe("The policies, in the order in which they come to act."),
});

/** The keys of a policy, for the reference. */
export const policyKeys = () => policySection.shape;

/** The actions for the reference: what each does, and the keys that it has beside. */
export const stepKinds = () =>
  steps.map((step) => {
    const { action, ...keys } = step.shape as z.core.$ZodShape & { action: z.ZodLiteral<string> };
    const [name] = action.values;
    return { name: String(name), meaning: meaningOf(step), keys };
  });
