import type { NodeFilter } from "./fleet/node-filter.ts";
import { type NodeOrder, SORT_COLUMNS } from "./fleet/node-order.ts";

/** Kinds of rows that the activity list can show. */
export const ACTIVITY_KINDS = ["all", "actions", "decisions", "orders"] as const;

/** The view that a user chose. It is in the address of the page, so it can be shared and survives a reload. */
export interface ViewState extends NodeFilter {
  /** Id of the node whose explanation is open. */
  readonly node: string | null;
  readonly view: "grid" | "table";
  /** Order of the table of all nodes. Null means region, country and name. */
  readonly tableOrder: NodeOrder | null;
  /** Order of the list of nodes that need attention. Null means urgency. */
  readonly attentionOrder: NodeOrder | null;
  /** Page of that list, counted from 1. */
  readonly page: number;
  readonly activity: (typeof ACTIVITY_KINDS)[number];
}

const DEFAULTS: ViewState = {
  node: null,
  status: null,
  remediation: null,
  search: "",
  view: "grid",
  tableOrder: null,
  attentionOrder: null,
  page: 1,
  activity: "all",
};

/** Returns the change that replaces the whole filter with another one. */
export const onlyFilter = (filter: Partial<NodeFilter>): Partial<ViewState> => ({
  status: null,
  remediation: null,
  search: "",
  page: 1,
  ...filter,
});

/**
 * Reads the fragment of an address, such as `#node/node_7?status=offline`. Without a question mark it changes only the
 * open node, and a fragment that names something else, such as a section of the page, changes nothing.
 */
export function parseFragment(fragment: string, current: ViewState = DEFAULTS): ViewState {
  const [, path = "", query] = /^#?([^?]*)(?:\?(.*))?$/s.exec(fragment) ?? [];
  const node = path.startsWith("node/") ? decodePercent(path.slice("node/".length)) || null : null;
  if (query === undefined) return node === null && path !== "" ? current : { ...current, node };
  const values = new URLSearchParams(query);
  return {
    node,
    status: values.get("status") || null,
    remediation: values.get("remediation") || null,
    search: values.get("q") ?? "",
    view: values.get("view") === "table" ? "table" : "grid",
    tableOrder: parseOrder(values.get("sort")),
    attentionOrder: parseOrder(values.get("attention_sort")),
    page: Math.max(1, Math.floor(Number(values.get("page") ?? 1)) || 1),
    activity: ACTIVITY_KINDS.find((kind) => kind === values.get("activity")) ?? "all",
  };
}

/** Returns the fragment of a state. It always has a question mark. */
export function formatFragment(state: ViewState): string {
  const { node, search, view, tableOrder, attentionOrder, page, activity, status, remediation } = state;
  const values = Object.entries({
    status,
    remediation,
    q: search,
    view: view === "grid" ? null : view,
    sort: tableOrder && formatOrder(tableOrder),
    attention_sort: attentionOrder && formatOrder(attentionOrder),
    page: page === 1 ? null : String(page),
    activity: activity === "all" ? null : activity,
  }).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return `#${node === null ? "" : `node/${encodeURIComponent(node)}`}?${new URLSearchParams(values)}`;
}

/** Reads an order such as `status`, or `-status` for the reverse. */
function parseOrder(text: string | null): NodeOrder | null {
  const column = SORT_COLUMNS.find((name) => name === text?.replace(/^-/, ""));
  return column === undefined ? null : { column, isDescending: text!.startsWith("-") };
}

const formatOrder = ({ column, isDescending }: NodeOrder): string => `${isDescending ? "-" : ""}${column}`;

/** Decodes percent-encoding. Invalid text is returned as it is. URLSearchParams would also decode `+` and split at `&`. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
