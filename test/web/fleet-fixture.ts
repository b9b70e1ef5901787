import { NODE_STATUSES, type NodeStatus } from "../../src/model/node.ts";
import type { Fleet } from "../../src/model/snapshot.ts";
import type { NodeMark, RemediationView } from "../../src/remediation/status/views.ts";
import { buildFleet as buildFleetOf } from "../metrics/snapshot-fixtures.ts";

/** A node of a test fleet. */
interface FleetNode {
  readonly id: string;
  /** Absent: `name of ` and the id. */
  readonly name?: string;
  readonly status?: NodeStatus;
  readonly region?: string;
}

/** Creates a fleet in which all values that are not given are unknown. The id "" leaves a slot empty. */
export function buildFleet(nodes: readonly FleetNode[]): Fleet {
  const fixtures = nodes.map(({ id, name = id && `name of ${id}`, region = "eu-west", ...rest }) => {
    return { id, name, country: "DE", region, listedAt: Number.NaN, ...rest };
  });
  const count = nodes.filter(({ id }) => id !== "").length;
  return { ...buildFleetOf(fixtures), count, usageKnown: false, lastWalk: null };
}

/** Returns the fleet with another status of some nodes. As in a publication, all other columns are shared. */
export function withStatus(fleet: Fleet, changed: Readonly<Record<number, NodeStatus>>): Fleet {
  const status = fleet.status.slice();
  for (const [slot, word] of Object.entries(changed)) status[Number(slot)] = NODE_STATUSES.indexOf(word);
  return { ...fleet, status };
}

/** Returns a step whose result is `result`. */
export function* stepsOf<Result>(result: Result): Generator<undefined, Result> {
  yield;
  return result;
}

/** Calls `mark` with these marks in a step, as {@link RemediationView.nodeMarks} does. */
export function* marksInSteps(
  marks: ReadonlyMap<string, NodeMark>,
  mark: (node: string, mark: NodeMark) => void,
): Generator<undefined, void> {
  yield;
  for (const [node, each] of marks) mark(node, each);
}
