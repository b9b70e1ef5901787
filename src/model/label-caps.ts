/** The label value for everything that has no series of its own. */
export const OTHER_LABEL = "other";

/**
 * Largest number of label values per family, for labels whose values come from the service. Further values are counted
 * under {@link OTHER_LABEL}, which bounds memory and the size of a scrape. A value that has a series keeps it while it is
 * seen. Families with one series per node are bounded by the size of the fleet.
 */
export const LABEL_CAPS = {
  proxynet_nodes: { values: 2_000, of: "pairs of country and region, each with a series a state" },
  proxynet_country_sessions: { values: 1_000, of: "countries; there are 676 codes of two letters" },
  proxynet_customer_sessions: { values: 100_000, of: "customers told apart; `export.top_customers` of them are shown" },
  proxynet_node_sessions: {
    values: 5_000,
    of: "nodes that sessions name and the list of nodes doesn't; the byte counters follow",
  },
  proxynet_stats_country_sessions: { values: 300, of: "countries; there are 249" },
  proxynet_stats_protocol_sessions: { values: 300, of: "protocols" },
} as const satisfies Readonly<Record<string, { readonly values: number; readonly of: string }>>;

/** The families whose labels have a cap. */
export type CappedFamily = keyof typeof LABEL_CAPS;

/** Values of the label `family` of `proxywarden_labels_folded_total`. */
export const CAPPED_FAMILIES = Object.keys(LABEL_CAPS) as readonly CappedFamily[];

/** Called with the number of records that one read counted under {@link OTHER_LABEL}. */
export type OnLabelsFolded = (family: CappedFamily, records: number) => void;
