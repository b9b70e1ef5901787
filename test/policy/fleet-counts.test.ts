import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runAtOnce } from "../../src/base/steps.ts";
import { type FailureDomain, NODE_STATUSES, type NodeStatus } from "../../src/model/node.ts";
import {
  type Action,
  CLOSED_STATES,
  type Episode,
  OPEN_STATES,
  type TimerRow,
} from "../../src/model/remediation/episode.ts";
import { isInFlight } from "../../src/policy/episodes/attempts.ts";
import { countFleet, disruptedEpisodes, findFiringNodes } from "../../src/policy/fleet-counts.ts";
import type { ActivePolicy } from "../../src/policy/policy.ts";
import { RemediationRecords } from "../../src/policy/remediation-records.ts";
import { INACTIVE } from "../../src/policy/timer.ts";
import { propertyRuns } from "../harness/run-length.ts";
import { actionOf, episodeOf } from "../journal/arbitrary-changes.ts";
import { buildFleet, type NodeFixture } from "../metrics/snapshot-fixtures.ts";
import { activePolicy, NOON, timerRow } from "./guard-case.ts";

/** The inputs of the counts. */
interface FleetScenario {
  readonly nodes: readonly (NodeFixture | null)[];
  readonly timers?: readonly TimerRow[];
  readonly episodes?: readonly Episode[];
  readonly actions?: readonly Action[];
  readonly policies?: readonly ActivePolicy[];
  readonly dryRun?: boolean;
}

const recordsOf = ({
  timers = [],
  episodes = [],
  actions = [],
}: Pick<FleetScenario, "timers" | "episodes" | "actions">) =>
  new RemediationRecords({ timers, episodes, actions, holds: [], facts: new Map(), lastNumber: 0 });

function countScenario({ nodes, policies = [activePolicy()], dryRun = false, ...rest }: FleetScenario) {
  return countFleet(buildFleet(nodes), recordsOf(rest), policies, dryRun, NOON);
}

const quarantine = { action: "act-9", endsAt: NOON, seen: true, seenOnline: 0, overdue: false };
const node = (id: string, status: NodeFixture["status"] = "online", region = "r"): NodeFixture => ({
  id,
  country: "DE",
  region,
  ...(status !== undefined && { status }),
});

describe("disrupted nodes", () => {
  const of = (overrides: Partial<Episode>, dryRun = false, actions: readonly Action[] = []) => {
    const records = recordsOf({ episodes: [episodeOf(1, overrides)], actions });
    return disruptedEpisodes(records, dryRun).map((each) => each.node);
  };

  test("are those with a step in progress, in our quarantine, or lost after an action", () => {
    for (const state of OPEN_STATES) {
      expect(of({ state })).toEqual(state === "acting" ? ["node_1"] : []);
      expect(of({ state, quarantine })).toEqual(state === "suspended" ? [] : ["node_1"]);
      expect(of({ state, acted: 1 })).toEqual(state === "acting" ? ["node_1"] : []);
      expect(of({ state, acted: 1, unlistedAt: 1 })).toEqual(
        state === "acting" || state === "suspended" ? ["node_1"] : [],
      );
    }
    for (const state of CLOSED_STATES) expect(of({ state, closedAt: 1, acted: 1, unlistedAt: 1 })).toEqual([]);
    expect(of({ state: "suspended", acted: 1, unlistedAt: 1, dryRun: true }, true)).toEqual([]);
  });

  test("do not include nodes in our quarantine that were offline before each action", () => {
    const inQuarantine = { state: "quarantined", quarantine, acted: 2 } as const;
    const sent = (number: number, statusBefore: NodeStatus) => actionOf(number, "ep-1", { statusBefore });
    expect(of(inQuarantine, false, [sent(1, "offline"), sent(2, "offline")])).toEqual([]);
    // The reboot took it away, not what ailed it.
    expect(of(inQuarantine, false, [sent(1, "online"), sent(2, "offline")])).toEqual(["node_1"]);
    expect(of(inQuarantine, false, [sent(1, "offline"), sent(2, "rebooting")])).toEqual([]);
    // The reboot brought it back before it was quarantined.
    expect(of(inQuarantine, false, [sent(1, "offline"), sent(2, "online")])).toEqual(["node_1"]);
    expect(of({ ...inQuarantine, state: "acting" }, false, [sent(1, "offline")])).toEqual(["node_1"]);
    expect(of({ ...inQuarantine, state: "suspended", unlistedAt: 1 }, false, [sent(1, "offline")])).toEqual(["node_1"]);
  });

  test("include nodes that a step has left down, until they are seen available", () => {
    expect(of({ state: "firing", acted: 1, downSince: 1 })).toEqual(["node_1"]);
    expect(of({ state: "suspended", acted: 1, downSince: 1 })).toEqual(["node_1"]);
    expect(of({ state: "suspended", acted: 1, downSince: null })).toEqual([]);
  });

  test("are counted separately for dry runs", () => {
    expect(of({ state: "acting", dryRun: true })).toEqual([]);
    expect(of({ state: "acting", dryRun: true }, true)).toEqual(["node_1"]);
    expect(of({ state: "acting" }, true)).toEqual([]);
  });
});

test("an action is in flight from sending until its verification", () => {
  const states = ["awaiting", "approved", "intended", "posting", "sent", "ended", "withdrawn"] as const;
  const under = states.filter((state) => isInFlight(actionOf(1, "ep-1", { state })));
  expect(under).toEqual(["posting", "sent"]);
});

describe("unhealthy", () => {
  test("are nodes that are offline, of unknown status, firing or disrupted, each counted once", () => {
    const nodes = NODE_STATUSES.map((status) => node(status, status));
    expect(countScenario({ nodes }).unhealthy).toBe(2);
    const timers = ["online", "offline", "rebooting"].map((id) => timerRow(id));
    expect(countScenario({ nodes, timers }).unhealthy).toBe(4);
    const episodes = ["online", "maintenance"].map((id, index) => episodeOf(index, { node: id, state: "acting" }));
    const { unhealthy, unhealthyBy } = countScenario({ nodes, timers, episodes });
    expect(unhealthy).toBe(5);
    expect(Object.fromEntries(unhealthyBy)).toEqual({
      offline: 1,
      "of unknown status": 1,
      disrupted: 2,
      "firing under reboot-offline": 1,
    });
  });

  test("are not nodes that are only pending or no longer in the fleet", () => {
    const timers = [timerRow("a", { state: "pending" }), timerRow("gone")];
    expect(countScenario({ nodes: [node("a")], timers }).unhealthy).toBe(0);
  });

  test("are not nodes that fire only under a policy in dry_run, except in the counts for dry runs", () => {
    const dry = activePolicy({ name: "dry" }, { mode: "dry_run" });
    const scenario = { nodes: [node("a"), node("b")], policies: [activePolicy(), dry] };
    const timers = [timerRow("a", { policy: "dry" }), timerRow("b")];
    expect(countScenario({ ...scenario, timers }).unhealthy).toBe(1);
    expect(countScenario({ ...scenario, timers, dryRun: true }).unhealthy).toBe(2);
    expect(countScenario({ ...scenario, timers: [timerRow("a", { policy: "removed" })] }).unhealthy).toBe(0);
  });
});

test("a lost node counts as unhealthy, disrupted and in its region; a node that left without an action does not count", () => {
  const lost = (number: number, node: string, acted: number) =>
    episodeOf(number, { node, region: "s", state: "suspended", acted, unlistedAt: 1 });
  // Two policies may have lost the same node.
  const seen = countScenario({
    nodes: [node("a")],
    episodes: [lost(1, "gone", 1), lost(2, "gone", 1), lost(3, "retired", 0)],
  });
  expect(seen).toMatchObject({ nodes: 2, unhealthy: 1, disrupted: new Set(["gone"]), lost: [{ node: "gone" }] });
  expect(seen.domains.region.get("s")).toEqual({ nodes: 1, online: 0, disrupted: 1 });
  expect(seen.domains.country.get("DE")).toEqual({ nodes: 2, online: 1, disrupted: 1 });
});

test("a node that an action makes unavailable after its step, and that is listed elsewhere by then, counts in both regions", () => {
  const request = { kind: "quarantine", reason: "drill", durationMinutes: 60 } as const;
  const sent = { node: "a", region: "s", request, state: "ended", sentAt: NOON - 1, outcome: "ineffective" } as const;
  const { region } = countScenario({
    nodes: [node("a", "quarantined")],
    episodes: [episodeOf(1, { node: "a", state: "given_up", closedAt: NOON - 1, acted: 1 })],
    actions: [actionOf(1, "ep-1", { ...sent, statusBefore: "online" })],
  }).domains;
  expect(region.get("r")).toEqual({ nodes: 1, online: 0, disrupted: 1 });
  expect(region.get("s")).toEqual({ nodes: 0, online: 0, disrupted: 1 });
});

describe("the counts of a mass event", () => {
  const ids = Array.from({ length: 3_000 }, (_, index) => `node_${index}`);
  const fleet = buildFleet(ids.map((id) => node(id)));
  const massEvent = () => recordsOf({ timers: ids.map((id) => timerRow(id)) });
  const stepsOf = (records: RemediationRecords) => findFiringNodes(fleet, records, [activePolicy()]);
  const unhealthy = (records: RemediationRecords, of = fleet) =>
    countFleet(of, records, [activePolicy()], false, NOON).unhealthy;

  test("find the firing nodes in many steps, and in none until a timer changes", () => {
    const records = massEvent();
    expect([...stepsOf(records)].length).toBeGreaterThan(10);
    expect([...stepsOf(records)]).toEqual([]);
    records.setTimer("reboot-offline", ids[0]!, INACTIVE);
    expect(unhealthy(records)).toBe(2_999);
    expect([...stepsOf(records)]).toEqual([]);
  });

  test("follow every change to timers and nodes, also while the firing nodes are found", () => {
    const records = massEvent();
    expect(unhealthy(records)).toBe(3_000);
    expect(unhealthy(records, buildFleet([node("another"), ...ids.slice(0, 10).map((id) => node(id))]))).toBe(10);
    expect(unhealthy(records)).toBe(3_000);
    records.setTimer("reboot-offline", ids[0]!, INACTIVE);
    expect(unhealthy(records)).toBe(2_999);
    records.setTimer("reboot-offline", ids[1]!, INACTIVE);
    const steps = stepsOf(records);
    for (let step = 0; step < 5; step++) steps.next();
    records.setTimer("reboot-offline", ids[2]!, INACTIVE);
    runAtOnce(steps);
    expect(unhealthy(records)).toBe(2_997);
  });
});

describe("fleet counts", () => {
  const ids = Array.from({ length: 12 }, (_, index) => `node_${index}`);
  const sketch = fc.record({
    status: fc.constantFrom(...NODE_STATUSES),
    country: fc.constantFrom("DE", "FR", ""),
    region: fc.constantFrom("r", "s", ""),
  });
  const scenarios: fc.Arbitrary<FleetScenario> = fc
    .record({
      sketches: fc.array(fc.option(sketch), { minLength: 12, maxLength: 12 }),
      timers: fc.uniqueArray(
        fc.record({ node: fc.constantFrom(...ids), policy: fc.constantFrom("one", "two"), isFiring: fc.boolean() }),
        { maxLength: 20, size: "max", selector: (each) => `${each.node} ${each.policy}` },
      ),
      episodes: fc.uniqueArray(
        fc.record({
          node: fc.constantFrom(...ids),
          dryRun: fc.boolean(),
          state: fc.constantFrom(...OPEN_STATES),
          quarantine: fc.constantFrom(null, quarantine),
          acted: fc.nat({ max: 1 }),
          country: fc.constantFrom("DE", "FR", ""),
          region: fc.constantFrom("r", "s", ""),
          unlistedAt: fc.constantFrom(null, 1),
          policy: fc.constantFrom("one", "two"),
        }),
        { maxLength: 12, size: "max", selector: (each) => `${each.node} ${each.dryRun}` },
      ),
      modes: fc.tuple(
        fc.constantFrom("dry_run" as const, "enforce" as const),
        fc.constantFrom("dry_run" as const, "approve" as const),
      ),
      dryRun: fc.boolean(),
    })
    .map(({ sketches, timers, episodes, modes, dryRun }) => ({
      nodes: sketches.map((each, index) => each && { ...each, id: ids[index]! }),
      timers: timers.map(({ isFiring, ...key }, since) =>
        timerRow(key.node, { ...key, since, state: isFiring ? "firing" : "pending" }),
      ),
      episodes: episodes.map((each, index) => episodeOf(index, each)),
      policies: ["one", "two"].map((name, index) => activePolicy({ name }, { mode: modes[index]! })),
      dryRun,
    }));

  test("equal counts made node by node", () => {
    fc.assert(
      fc.property(scenarios, (scenario) => {
        const { unhealthy, nodes, domains, disrupted } = countScenario(scenario);
        const plain = referenceCounts(scenario);
        expect({ unhealthy, nodes }).toEqual({ unhealthy: plain.unhealthy, nodes: plain.nodes });
        expect(disrupted).toEqual(plain.disrupted);
        expect(domains).toEqual(plain.domains);
      }),
      propertyRuns(1_000),
    );
  });
});

/** Each node by itself, and each count by a search. */
function referenceCounts({ nodes, timers = [], episodes = [], policies = [], dryRun = false }: FleetScenario) {
  const present = nodes.filter((each) => each !== null);
  const counted = policies.filter(({ mode }) => dryRun || mode !== "dry_run").map(({ policy }) => policy.spec.name);
  const mine = timers.filter(({ policy }) => counted.includes(policy));
  const disrupting = episodes.filter(
    (each) =>
      each.dryRun === dryRun &&
      (each.state === "suspended"
        ? !dryRun && each.acted > 0 && each.unlistedAt === 1
        : each.state === "acting" || each.quarantine !== null),
  );
  const isDisrupted = (id: string) => disrupting.some((each) => each.node === id);
  const absent = disrupting.filter((each) => !present.some(({ id }) => id === each.node));
  const counting = [
    ...present,
    ...absent.map(({ node: id, country, region }): NodeFixture => ({ id, country, region, status: "offline" })),
  ];
  const isUnhealthy = ({ id, status }: NodeFixture) =>
    status === "offline" ||
    status === "unknown" ||
    isDisrupted(id) ||
    mine.some((timer) => timer.node === id && timer.state === "firing");
  const countsBy = (by: FailureDomain) => {
    // Nodes that are listed elsewhere than when their episode began.
    const moved = disrupting.filter((each) => present.some((node) => node.id === each.node && node[by] !== each[by]));
    return new Map(
      [...new Set([...counting, ...moved].map((each) => each[by]!))].map((domain) => {
        const there = counting.filter((each) => each[by] === domain);
        const free = there.filter(({ id }) => !isDisrupted(id));
        const online = free.filter(({ status }) => status === "online").length;
        const left = moved.filter((each) => each[by] === domain).length;
        return [domain, { nodes: there.length, online, disrupted: there.length - free.length + left }] as const;
      }),
    );
  };
  const domains = { region: countsBy("region"), country: countsBy("country") };
  return {
    nodes: counting.length,
    unhealthy: counting.filter(isUnhealthy).length,
    disrupted: new Set(disrupting.map((each) => each.node)),
    domains,
  };
}
