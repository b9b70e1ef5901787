import { NODE_STATUSES } from "../../../../../src/model/node.ts";
import { NODE_MARKS } from "../../../../../src/remediation/status/views.ts";
import type { FleetDocument } from "../../../../../src/web/ui/page/api.ts";

/** Five nodes in three places. One slot is empty, one node has no name, one no place. */
export const document: FleetDocument = {
  revision: 7,
  statuses: NODE_STATUSES,
  marks: NODE_MARKS,
  places: [
    { country: "US", region: "us-east" },
    { country: "DE", region: "eu-central" },
    { country: "", region: "" },
  ],
  ids: ["n1", "n2", "", "n3", "n4", "n5"],
  names: ["iad-10", "iad-9", "", "fra-1", "", "iad-11"],
  place: [0, 0, 0, 1, 2, 0],
  status: "010104",
  mark: "00005a",
};
