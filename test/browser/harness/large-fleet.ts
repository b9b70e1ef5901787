import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { Fleet } from "../../../src/model/snapshot.ts";
import { NODE_MARKS, type NodeMark } from "../../../src/remediation/status/views.ts";
import type { WebDeps } from "../../../src/web/http/route.ts";
import { idleRemediation } from "../../web/api/remediation-view-fixture.ts";
import { buildFleet, marksInSteps, withStatus } from "../../web/fleet-fixture.ts";
import { quietStatus } from "./quiet-daemon.ts";

const REGIONS = ["eu-west", "eu-central", "us-east", "us-west", "ap-south", "ap-northeast", "sa-east", "af-south"];

/** A fleet of any size in eight regions, whose nodes a test changes. */
export class LargeFleet {
  #fleet: Fleet;
  #marks: ReadonlyMap<string, NodeMark>;
  #changes = 0;

  /** One node in 41 is not online, one in 50 has a mark. */
  constructor(nodes: number) {
    this.#fleet = buildFleet(
      Array.from({ length: nodes }, (_, index) => ({
        id: `node_${index}`,
        region: REGIONS[index % REGIONS.length]!,
        status: index % 41 === 7 ? NODE_STATUSES[1 + (((index / 41) % 5) | 0)]! : "online",
      })),
    );
    const marked = Array.from({ length: Math.floor(nodes / 50) }, (_, index) => 50 * index + 7);
    this.#marks = new Map(
      marked.map((index, at) => [`node_${index}`, NODE_MARKS[1 + (at % (NODE_MARKS.length - 1))]!] as const),
    );
  }

  /** Takes some nodes offline, or back online: a different part of the fleet at each call. */
  change(nodes: number): void {
    const { slots, status } = this.#fleet;
    const changed = Array.from({ length: nodes }, (_, index) => ((this.#changes * nodes + index) * 37) % slots);
    this.#changes++;
    this.#fleet = withStatus(
      this.#fleet,
      Object.fromEntries(changed.map((slot) => [slot, status[slot] === 0 ? "offline" : "online"])),
    );
  }

  /** Changes the status of nodes by their slot. */
  set(statuses: Parameters<typeof withStatus>[1]): void {
    this.#fleet = withStatus(this.#fleet, statuses);
  }

  /** Returns the number of online nodes. */
  online(): number {
    return this.#fleet.status.reduce((online, status) => online + (status === 0 ? 1 : 0), 0);
  }

  /** Data for the web server of a daemon with this fleet. */
  webDeps(): Pick<WebDeps, "status" | "budget" | "fleet" | "remediation"> {
    return {
      ...quietStatus(),
      fleet: () => this.#fleet,
      remediation: () => ({ ...idleRemediation, nodeMarks: (mark) => marksInSteps(this.#marks, mark) }),
    };
  }
}
