import type { ApiError } from "../../api-client/errors.ts";
import { readNodeDetail } from "../../collectors/detail-collector.ts";
import type { NodeId } from "../../model/node.ts";
import type { RemediationContext } from "../context.ts";

/**
 * Reads one node into the inventory, with the priority of an action. Returns why that failed, or null if it was read.
 */
export async function readNode(
  context: Pick<RemediationContext, "client" | "clock" | "detailReporter" | "inventory">,
  id: NodeId,
  signal: AbortSignal,
): Promise<ApiError | null> {
  const { detailReporter: reporter, inventory } = context;
  const error = await readNodeDetail({ ...context, reporter }, { id, lane: "action" }, signal);
  // Details may not be collected, and then there is no run with which the remarks would be logged.
  reporter.logRemarks();
  if (error === null && !inventory.has(id)) return { kind: "not_found", message: "it is not listed any more" };
  return error;
}
