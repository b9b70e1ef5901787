import { type DurationMs, HOUR_MS } from "../../../src/base/duration.ts";
import { HELD_TOO_LONG, HOLD_MS_MAX, HOLD_REASON_ROWS } from "../../../src/policy/decision.ts";
import type { NodeExplanation, PolicyExplanation } from "../../../src/remediation/status/views.ts";

/** A period in which a policy held an unhealthy node. Times are since the start of the run. */
export interface Hold {
  readonly node: string;
  readonly policy: string;
  readonly from: DurationMs;
  until: DurationMs;
  /** Number of observations by reason. */
  readonly reasons: Map<string, number>;
  /** Whether it lasted longer than {@link HOLD_MS_MAX} while no alert of any of its reasons fired. */
  hasNoAlert: boolean;
}

/** The holds of a run. */
export interface HoldRecord {
  readonly holds: readonly Hold[];
  /** Records the holds of unhealthy nodes. `alerts` are the names of the firing alerts. */
  observe(at: DurationMs, nodes: readonly NodeExplanation[], alerts: ReadonlySet<string>): void;
}

/** Creates an empty record. `everyMs` is the time between two observations. */
export function createHoldRecord(everyMs: DurationMs): HoldRecord {
  const holds: Hold[] = [];
  const open = new Map<string, Hold>();

  function holdOf(at: DurationMs, node: string, { policy, blockers }: PolicyExplanation, alerts: ReadonlySet<string>) {
    const key = `${policy} ${node}`;
    const known = open.get(key);
    const hold = known ?? { node, policy, from: at, until: at, reasons: new Map(), hasNoAlert: false };
    if (known === undefined) holds.push(hold);
    hold.until = at + everyMs;
    const reasons = new Set(blockers.map(({ reason }) => reason));
    for (const reason of reasons) hold.reasons.set(reason, (hold.reasons.get(reason) ?? 0) + 1);
    const hasAlert =
      alerts.has(HELD_TOO_LONG) || [...reasons].some((reason) => alerts.has(HOLD_REASON_ROWS[reason].alert ?? ""));
    if (hold.until - hold.from > HOLD_MS_MAX && !hasAlert) hold.hasNoAlert = true;
    return [key, hold] as const;
  }

  return {
    holds,
    observe(at, nodes, alerts) {
      const now = nodes
        .filter((each) => !isBeingTreated(each))
        .flatMap(({ node, policies }) =>
          policies
            .filter(({ timer, blockers }) => timer?.state === "firing" && blockers.length > 0)
            .map((held) => holdOf(at, node, held, alerts)),
        );
      open.clear();
      for (const [key, hold] of now) open.set(key, hold);
    },
  };
}

/** Returns whether an episode of any policy has a step in progress on the node. */
const isBeingTreated = ({ policies }: NodeExplanation): boolean =>
  policies.some(
    ({ episode }) => episode?.closedAt === null && episode.state !== "firing" && episode.state !== "suspended",
  );

/** Returns the names of shipped alerts about holds whose expression is true for the page, regardless of their `for`. */
export function alertsOf(page: string): ReadonlySet<string> {
  const values = (name: string) =>
    [...page.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))].map(([, value]) => Number(value));
  const firing: Readonly<Record<string, boolean>> = {
    [HELD_TOO_LONG]: values("proxywarden_longest_hold_seconds").some((seconds) => seconds * 1_000 > 5.5 * HOUR_MS),
    ProxywardenBreakerOpen: values("proxywarden_breaker_open").includes(1),
    ProxywardenUntrusted: values("proxywarden_trusted").includes(0),
    ProxywardenNodeGivenUp: [...page.matchAll(/^proxywarden_episodes\{.*state="given_up"\} (\S+)$/gm)].some(
      ([, count]) => Number(count) > 0,
    ),
  };
  return new Set(Object.keys(firing).filter((name) => firing[name]));
}
