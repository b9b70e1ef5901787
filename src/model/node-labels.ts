/** Labels that `proxynet_node_info` may carry beside the node's id. */
export const NODE_LABELS = ["name", "country", "region", "version", "ip_address"] as const;
export type NodeLabel = (typeof NODE_LABELS)[number];
