import type { z } from "zod";
import { FAILURE_DOMAINS, type PerFailureDomain } from "../../model/node.ts";
import { MODES } from "../../model/policy/policy.ts";
import { camelKeys } from "./camel-keys.ts";
import { booleanFlag, duration, expression, oneOf, RUN_ALWAYS, section, share, wholeNumber } from "./value-types.ts";

/** Largest number of nodes in a limit: more than any fleet has. */
const NODES_MAX = 1_000_000;

const nodes = (min = 0) => wholeNumber(min, NODES_MAX);

/** A limit per failure domain: region, country or both. A domain that is not named has no limit. */
const perDomain = (meaning: string, limit: string) =>
  section({
    region: nodes().exactOptional().describe(`${limit} of one region.`),
    country: nodes().exactOptional().describe(`${limit} of one country.`),
  })
    .refine((value) => FAILURE_DOMAINS.some((domain) => domain in value), {
      ...RUN_ALWAYS,
      error: "must have region, country or both",
    })
    .meta({ anyOf: FAILURE_DOMAINS.map((domain) => ({ required: [domain] })) })
    .transform(({ region, country }): PerFailureDomain => ({ region: region ?? null, country: country ?? null }))
    .prefault({ region: 1 })
    .describe(meaning);

const trust = section({
  min_inventory: share(0, 100)
    .prefault("80%")
    .describe("Least share of the largest complete walk in 7 days that a walk must show."),
  max_missing: share(0, 100)
    .prefault("2%")
    .describe("Largest share of the list's total that a walk may fail to show after nodes were looked up by id."),
  max_unknown: share(0, 100)
    .prefault("10%")
    .describe("Largest share of list records that may be rejected, or of an unknown status."),
  max_freshest_last_seen: duration("1s", "30d")
    .prefault("5m")
    .describe("Age that the freshest `last_seen` of the fleet may have."),
  warmup_walks: wholeNumber(0, 100).default(2).describe("Complete walks after a start before any node is acted on."),
})
  .transform((section) => camelKeys(section, "max_freshest_last_seen"))
  .prefault({})
  .describe("When fleet data is trusted. While it is not, no node is acted on.");

const breaker = section({
  percent: share(0, 100).prefault("5%").describe("Share of the fleet."),
  amount: nodes().default(10).describe("Number of nodes."),
  within: duration("1m", "1d").prefault("1h").describe("Time in which they began to fire."),
})
  .transform(({ percent, amount, within }) => ({ share: percent, amount, withinMs: within }))
  .prefault({})
  .describe("Opens if more nodes fire than the larger of both, and stays open until an operator resets it.");

const correlated = section({
  by: oneOf(FAILURE_DOMAINS).default("region").describe("The failure domain that is counted."),
  nodes: nodes(2).default(5).describe("Number of nodes in the failure domain."),
  percent: share(0, 100).prefault("50%").describe("Share of the nodes in the failure domain."),
  within: duration("1s", "7d").prefault("5m").describe("Time in which they became unhealthy; at least two walks."),
})
  .transform(({ by, nodes, percent, within }) => ({ by, nodes, share: percent, withinMs: within }))
  .prefault({})
  .describe(
    "If the smaller of both, and at least 2, become unhealthy together in one failure domain, it is one incident: receivers are notified, and no action is taken.",
  );

/** The section `safety`: the limits over all policies. */
export const safetySchema = section({
  mode: oneOf(MODES)
    .default("dry_run")
    .describe(
      "The ceiling over every policy's own mode. `dry_run`: actions are recorded, not sent; `approve`: an operator approves each action; `enforce`: actions are sent.",
    ),
  trust,
  max_unhealthy: section({ percent: share(0, 100).prefault("20%").describe("Share of the fleet.") })
    .transform(({ percent }) => ({ share: percent }))
    .prefault({})
    .describe(
      "Nodes offline, of unknown status or firing at once. Above it, a fleet-wide outage: no node is acted on.",
    ),
  max_disrupted: section({
    percent: share(0, 100).prefault("5%").describe("Share of the fleet; one above 0 comes to one node at least."),
    amount: nodes().default(5).describe("Number of nodes."),
  })
    .transform(({ percent, amount }) => ({ share: percent, amount }))
    .prefault({})
    .describe(
      "Nodes that our actions make unavailable at once: rebooting, disconnected, in our quarantine (unless they were offline before it), or gone from the list since we acted. The smaller counts.",
    ),
  max_disrupted_per: perDomain(
    "The same in one failure domain: region, country or both.",
    "Nodes that our actions make unavailable at once,",
  ),
  min_online_per: perDomain(
    "An online node is not taken out where fewer than this would stay online: region, country or both.",
    "Nodes that stay online",
  ),
  max_in_flight: wholeNumber(0, 1_000).default(1).describe("Actions sent and not yet verified."),
  max_actions: section({
    amount: nodes().default(6).describe("Number of actions."),
    per: duration("1m", "1d").prefault("1h").describe("Time in which they are sent."),
  })
    .transform((section) => camelKeys(section, "per"))
    .prefault({})
    .describe(
      "Actions sent, of any kind; every attempt counts. Above it, all actions are held until some of these are older than that.",
    ),
  breaker,
  approval_ttl: duration("1m", "30d")
    .prefault("4h")
    .describe("An approval, or a request for one, expires after this. Time in which the daemon is down counts."),
  cooldown: duration("0s", "30d").prefault("30m").describe("Between two episodes of one node."),
  storm_cooldown: duration("0s", "30d")
    .prefault("30m")
    .describe("After a fleet-wide outage, before any node is acted on again."),
  correlated,
  canary: booleanFlag()
    .default(true)
    .describe("Under a changed policy the first action is verified before a second one is sent."),
  protected: expression()
    .exactOptional()
    .describe("Nodes for which it holds are never acted on. Unset: no node is protected."),
  efficacy: section({
    window: wholeNumber(1, 1_000).default(10).describe("Number of different nodes that the policy treated last."),
    min_success: share(0, 100).prefault("50%").describe("Share of them that must have been healed."),
  })
    .transform((section) => camelKeys(section))
    .prefault({})
    .describe(
      "Below it a policy falls back to dry_run, durably, until its text changes or an operator orders reset-breaker.",
    ),
})
  .transform(({ protected: expression = null, ...section }) => ({
    ...camelKeys(section, "approval_ttl", "cooldown", "storm_cooldown"),
    protected: expression,
  }))
  .prefault({})
  .describe("The limits over all policies. Every kind of action counts against every limit.");

/** The limits over all policies. Durations end in `Ms`; shares are 0 to 1. */
export type Safety = z.output<typeof safetySchema>;
