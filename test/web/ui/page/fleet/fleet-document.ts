import { NODE_STATUSES } from "../../../../../src/model/node.ts";
import { NODE_MARKS } from "../../../../../src/remediation/status/views.ts";
import type { FleetDocument } from "../../../../../src/web/api/fleet-columns.ts";

/** Five nodes in three locations. One slot is empty, one node has no name, one no location. */
export const document: FleetDocument = {
  revision: 7,
  statuses: NODE_STATUSES,
  marks: NODE_MARKS,
  locations: [
    { country: "US", region: "us-east" },
    { country: "DE", region: "eu-central" },
    { country: "", region: "" },
  ],
  ids: ["n1", "n2", "", "n3", "n4", "n5"],
  names: ["iad-10", "iad-9", "", "fra-1", "", "iad-11"],
  location: [0, 0, 0, 1, 2, 0],
  status: "010104",
  mark: "00005a",
};
