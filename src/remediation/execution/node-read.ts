import { decodeNodeDetail } from "../../api-client/decoding/records.ts";
import { readNodeCall } from "../../api-client/endpoints.ts";
import type { ApiError } from "../../api-client/errors.ts";
import type { NodeId } from "../../model/node.ts";
import type { RemediationContext } from "../context.ts";

/**
 * Reads one node into the inventory, with the priority of an action. Returns why that failed, or null if it was read.
 */
export async function readNode(
  { client, clock, inventory }: Pick<RemediationContext, "client" | "clock" | "inventory">,
  node: NodeId,
  signal: AbortSignal,
): Promise<ApiError | null> {
  const answer = await client.get(readNodeCall(node), "action", signal);
  if (!answer.ok) return answer.error;
  const detail = decodeNodeDetail(answer.value.json, () => {});
  if (detail === null || detail.id !== node)
    return { kind: "wrong_shape", message: "the response is not a record of this node" };
  if (!inventory.has(node)) return { kind: "not_found", message: "it is not listed any more" };
  inventory.recordDetail(detail, answer.value.at, clock.now());
  return null;
}
