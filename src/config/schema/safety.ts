import type { z } from "zod";
import { FAILURE_DOMAINS, type PerFailureDomain } from "../../model/node.ts";
import { MODES } from "../../model/policy/policy.ts";
import {
  atLeastOneOf,
  booleanFlag,
  camelKeys,
  duration,
  expression,
  oneOf,
  section,
  share,
  wholeNumber,
} from "./value-types.ts";

/** Maximum number of nodes in a limit, which is larger than any fleet. */
const NODES_MAX = 1_000_000;

const nodes = (min = 0) => wholeNumber(min, NODES_MAX);

/** A limit for each region, each country or both. A failure domain without a key has no limit. */
const perDomain = (meaning: string, limit: string) =>
  atLeastOneOf(FAILURE_DOMAINS, "must have region, country or both", {
    region: nodes().exactOptional().describe(`${limit} region.`),
    country: nodes().exactOptional().describe(`${limit} country.`),
  })
    .transform(({ region, country }): PerFailureDomain => ({ region: region ?? null, country: country ?? null }))
    .prefault({ region: 1 })
    .describe(meaning);

const trust = section({
  min_inventory: share(100)
    .prefault("80%")
    .describe(
      "Minimum number of nodes, as a share of the largest complete walk of the last 7 days. While the list contains a smaller share of the earlier nodes, no node is removed from the inventory for up to 7 days.",
    ),
  max_missing: share(100)
    .prefault("2%")
    .describe(
      "Maximum share of the list's total that a walk may miss, after missing nodes have been looked up by id; a share above 0 allows at least one node.",
    ),
  max_unknown: share(100)
    .prefault("10%")
    .describe("Maximum share of records that are unreadable or have an unknown status."),
  max_freshest_last_seen: duration("1s", "30d")
    .prefault("5m")
    .describe("Maximum age of the freshest `last_seen` of the fleet."),
  warmup_walks: wholeNumber(0, 100)
    .default(2)
    .describe("Number of complete walks after a start before any action is taken."),
})
  .transform((section) => camelKeys(section, "max_freshest_last_seen"))
  .prefault({})
  .describe("When fleet data is trusted. While it is not, no action is taken.");

const breaker = section({
  percent: share(100).prefault("5%").describe("Share of the fleet."),
  amount: nodes().default(10).describe("Number of nodes."),
  within: duration("1m", "1d").prefault("1h").describe("Period in which nodes are counted."),
})
  .transform(({ percent, amount, within }) => ({ share: percent, amount, withinMs: within }))
  .prefault({})
  .describe(
    "Circuit breaker. It counts the nodes that begin to fire, or are lost after an action, within the period. It opens if there are more than `percent` or `amount`, whichever is larger, and stays open until an operator resets it.",
  );

const correlated = section({
  by: oneOf(FAILURE_DOMAINS).default("region").describe("Failure domain in which nodes are counted."),
  nodes: nodes(2).default(5).describe("Number of nodes in one failure domain that become unhealthy together."),
  percent: share(100)
    .prefault("50%")
    .describe("Share of the nodes in one failure domain that become unhealthy together."),
  within: duration("1s", "7d")
    .prefault("5m")
    .describe("Period in which failures are counted; extended to two walk intervals if it is shorter."),
})
  .transform(({ by, nodes, percent, within }) => ({ by, nodes, share: percent, withinMs: within }))
  .prefault({})
  .describe(
    "Correlated failure. If at least `nodes` nodes or `percent` of the nodes in one failure domain, whichever is smaller (but at least 2), become unhealthy together, they are treated as one incident: receivers are notified, and no action is taken on them.",
  );

/** The section `safety`: limits on all policies together. */
export const safetySchema = section({
  mode: oneOf(MODES)
    .default("dry_run")
    .describe(
      "Upper limit for the mode of every policy. `dry_run`: actions are recorded, not sent; `approve`: an operator approves each action; `enforce`: actions are sent.",
    ),
  trust,
  max_unhealthy: section({
    percent: share(100).prefault("20%").describe("Share of the fleet; a share above 0 allows at least one node."),
  })
    .transform(({ percent }) => ({ share: percent }))
    .prefault({})
    .describe(
      "Maximum share of nodes that are offline, of unknown status, firing or disrupted at once. Above it, no action is taken (storm).",
    ),
  max_disrupted: section({
    percent: share(100).prefault("5%").describe("Share of the fleet; a share above 0 allows at least one node."),
    amount: nodes().default(5).describe("Number of nodes."),
  })
    .transform(({ percent, amount }) => ({ share: percent, amount }))
    .prefault({})
    .describe(
      "Maximum number of nodes that the daemon's actions make unavailable at the same time: nodes that are rebooting, disconnected, quarantined by the daemon (unless they were offline before), or down or missing from the list since an action. The smaller of `percent` and `amount` applies.",
    ),
  max_disrupted_per: perDomain(
    "Maximum number of nodes that the daemon's actions make unavailable at the same time, per region, per country or both.",
    "Maximum number of disrupted nodes in any",
  ),
  min_online_per: perDomain(
    "Minimum number of online nodes per region, per country or both. No action is taken on an online node if fewer would stay online.",
    "Minimum number of online nodes in any",
  ),
  max_in_flight: wholeNumber(0, 1_000)
    .default(1)
    .describe("Maximum number of actions that are sent and not yet verified."),
  max_actions: section({
    amount: nodes().default(6).describe("Number of actions."),
    per: duration("1m", "1d").prefault("1h").describe("Period in which actions are counted."),
  })
    .transform((section) => camelKeys(section, "per"))
    .prefault({})
    .describe(
      "Maximum number of actions of any kind sent within a period; every POST that the service answered or may have received counts. Further actions are held until enough earlier ones are older than the period.",
    ),
  breaker,
  approval_ttl: duration("1m", "30d")
    .prefault("4h")
    .describe("Time, including downtime, after which an approval or a request for one expires."),
  cooldown: duration("0s", "30d").prefault("30m").describe("Minimum time between two episodes of a node."),
  storm_cooldown: duration("0s", "30d")
    .prefault("30m")
    .describe(
      "Time without actions after a storm or untrusted data; after a correlated failure, time without actions on its nodes.",
    ),
  correlated,
  canary: booleanFlag()
    .default(true)
    .describe("Whether the first action of a new or changed policy is verified before others are sent."),
  protected: expression()
    .exactOptional()
    .describe("Nodes on which no action is ever taken. By default no node is protected."),
  efficacy: section({
    window: wholeNumber(1, 1_000)
      .default(10)
      .describe(
        "Number of most recently treated nodes that are counted. A policy that has treated fewer does not fall back. Episodes that closed more than 30 days ago don't count.",
      ),
    min_success: share(100).prefault("50%").describe("Minimum share of the counted nodes that were healed."),
  })
    .transform((section) => camelKeys(section))
    .prefault({})
    .describe(
      "Minimum efficacy. Below it a policy falls back to dry_run until its text changes or an operator runs `reset-breaker`, even across restarts.",
    ),
})
  .transform(({ protected: expression = null, ...section }) => ({
    ...camelKeys(section, "approval_ttl", "cooldown", "storm_cooldown"),
    protected: expression,
  }))
  .prefault({})
  .describe(
    "Limits on all policies together. They apply to disconnects, reboots and quarantines; `trust`, `cooldown` and the mode `dry_run` also apply to notify steps.",
  );

/** Limits on all policies together. Durations end in `Ms`; shares are 0 to 1. */
export type Safety = z.output<typeof safetySchema>;
