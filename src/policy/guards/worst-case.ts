import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import { MODES, type Mode, type PolicyRule } from "../../model/policy/policy.ts";
import { DOMAINS, type Domain, type Safety } from "../../model/policy/safety.ts";
import { lesser } from "../policy.ts";

/** The most nodes that something can happen to: in the fleet, and in any one region or country. */
export type Extent = Readonly<Record<"fleet" | Domain, number>>;

/** What could happen at worst under one `safety.mode`, whatever the nodes do and however large the fleet is. */
export interface Reach {
  /** Policies that touch nodes by themselves. */
  readonly acting: readonly string[];
  /** Policies that touch nodes after a person's yes. */
  readonly asking: readonly string[];
  /** Nodes acted on in any hour: as many as actions, for each may be on another node. */
  readonly nodesAnHour: Extent;
  /** Nodes disrupted at once. In a small fleet the share of max_disrupted may hold earlier. */
  readonly nodesAtOnce: Extent;
}

/** What could happen at worst, by `safety.mode`: the one in force, and what another would allow. */
export interface WorstCase {
  readonly inForce: Mode;
  readonly modes: Readonly<Record<Mode, Reach>>;
}

/** The worst case that follows from the limits alone: no look at a fleet, no trust in any expression. */
export function worstCase(safety: Safety, rules: readonly PolicyRule[]): WorstCase {
  const reaches = MODES.map((mode) => [mode, reachOf(mode, safety, rules)] as const);
  return { inForce: safety.mode, modes: Object.fromEntries(reaches) as Record<Mode, Reach> };
}

function reachOf(ceiling: Mode, safety: Safety, rules: readonly PolicyRule[]): Reach {
  const touching = rules.filter(touches);
  const namesOf = (mode: Mode) =>
    touching.filter((rule) => lesser(rule.mode, ceiling) === mode).map(({ name }) => name);
  const [acting, asking] = [namesOf("enforce"), namesOf("approve")];
  const isIdle = acting.length + asking.length === 0 || holdsEverybody(safety);
  const atOnce = isIdle ? 0 : safety.maxDisrupted.amount;
  const anHour = isIdle ? 0 : safety.maxActions.amount * windowsAnHour(safety.maxActions.perMs);
  // A place may be touched as often as the fleet: as soon as one node of it is well again, the next one has its turn.
  const limitOf = (domain: Domain) => safety.maxDisruptedPer[domain] ?? Number.POSITIVE_INFINITY;
  return {
    acting,
    asking,
    nodesAnHour: extentOf(anHour, (domain) => (limitOf(domain) === 0 ? 0 : anHour)),
    nodesAtOnce: extentOf(atOnce, (domain) => Math.min(atOnce, limitOf(domain))),
  };
}

const extentOf = (fleet: number, of: (domain: Domain) => number): Extent => ({
  fleet,
  ...(Object.fromEntries(DOMAINS.map((domain) => [domain, of(domain)])) as Record<Domain, number>),
});

/** Whether a policy can act on nodes, rather than only notify. */
const touches = ({ steps, retry }: PolicyRule): boolean =>
  retry.episodes > 0 && steps.some(({ action }) => action !== "notify");

/** Whether a limit prevents every action. */
const holdsEverybody = (safety: Safety): boolean =>
  [
    safety.maxUnhealthy.share,
    safety.maxDisrupted.share,
    safety.maxDisrupted.amount,
    safety.maxInFlight,
    safety.maxActions.amount,
    Math.max(safety.breaker.share, safety.breaker.amount),
    ...DOMAINS.map((domain) => safety.maxDisruptedPer[domain] ?? 1),
  ].includes(0);

/** How often a window that slides along an hour can be filled within it. */
const windowsAnHour = (perMs: DurationMs): number => Math.ceil(HOUR_MS / perMs);
