import type { DecisionView } from "../../../api/row-views.ts";
import { type Child, createElement, nodeLink } from "../dom.ts";
import { countNoun, humanize, timeOfDay } from "../format.ts";
import type { ActivityLine } from "./activity-lines.ts";
import { type Incident, latestByNode } from "./incidents.ts";

type NameOf = (node: string) => string;

/** Display options of a line of the list. */
interface LineView {
  readonly isOpen: boolean;
  readonly nameOf: NameOf;
  onToggle(): void;
}

/** Creates the line of a decision, an action or an operator command. */
export function lineElement(line: ActivityLine, view: LineView): HTMLElement {
  const summary = line.summary === "" ? null : ` ${line.summary}`;
  const { node, policy } = line;
  const title = [node === null ? null : nodeLink(node, view.nameOf(node), line.key), summary];
  const detail = node === null ? line.detail : line.detail.replaceAll(node, view.nameOf(node));
  const source = policy === null ? null : policyElement({ policy, isDryRun: line.isDryRun });
  const body = [detailElement(detail, line.blockers, source)];
  return rowElement(line, view, title, body, () => [
    createElement(
      "dl",
      { class: "fields" },
      ...line.facts.map(([name, value]) =>
        createElement("div", {}, createElement("dt", {}, name), createElement("dd", {}, value)),
      ),
    ),
    blockerList(line.blockers),
  ]);
}

/** Creates the line of an incident. An open line lists its nodes. */
export function incidentElement(incident: Incident, view: LineView): HTMLElement {
  const newest = incident.lines[0]!;
  const nodes = latestByNode(incident);
  const title = [createElement("b", {}, countNoun(nodes.length, "node")), ` since ${sinceText(incident)}`];
  const reasons = [...new Set(newest.blockers.map(({ reason }) => humanize(reason)))].join(", ");
  const body = [
    createElement(
      "span",
      { class: "detail muted" },
      policyElement({ policy: newest.policy!, isDryRun: newest.isDryRun }),
      createElement("b", {}, reasons),
    ),
  ];
  return rowElement({ ...newest, key: incident.key }, view, title, body, () => [
    createElement(
      "ul",
      { class: "incident-nodes" },
      ...nodes.map((line) =>
        createElement(
          "li",
          {},
          nodeLink(line.node!, view.nameOf(line.node!), incident.key),
          createElement(
            "span",
            { class: "muted" },
            ` ${timeOfDay(line.at, Date.now())}, ${line.blockers.map(({ detail }) => detail).join("; ")}`,
          ),
        ),
      ),
    ),
  ]);
}

const sinceText = ({ lines }: Incident): string => timeOfDay(lines.at(-1)!.at, Date.now());

function rowElement(
  { key, at, tone, badge }: ActivityLine,
  { isOpen, onToggle }: LineView,
  title: readonly Child[],
  body: readonly Child[],
  more: () => readonly Child[],
): HTMLElement {
  const toggle = createElement(
    "button",
    {
      ...{ type: "button", class: "expand", "data-k": `expand ${key}`, "aria-expanded": String(isOpen) },
      ...{ "aria-label": "Details", onclick: onToggle },
    },
    isOpen ? "▾" : "▸",
  );
  return createElement(
    "li",
    { class: isOpen ? "is-open" : null },
    createElement("time", { datetime: at }, timeOfDay(at, Date.now())),
    createElement("span", { class: `badge tone-${tone}` }, badge),
    createElement("span", { class: "what" }, ...title),
    toggle,
    createElement("div", { class: "line-body" }, ...body, ...(isOpen ? more() : [])),
  );
}

/** Shows the name of a policy after the word "policy", because it may also be the name of a status. */
export const policyElement = ({
  policy,
  isDryRun,
}: {
  readonly policy: string;
  readonly isDryRun: boolean;
}): HTMLElement =>
  createElement(
    "span",
    { class: "policy-name" },
    "policy ",
    createElement("b", {}, policy),
    isDryRun ? " (dry run) " : " ",
  );

/** Returns the policy, the detail and the blockers of a line, or null if there are none. */
export function detailElement(
  detail: string,
  blockers: DecisionView["blockers"],
  policy: HTMLElement | null = null,
): HTMLElement | null {
  if (detail === "" && blockers.length === 0) return policy;
  const reasons = blockers.flatMap((blocker, index) => [
    index === 0 ? "" : " · ",
    createElement("b", {}, humanize(blocker.reason)),
    ` ${blocker.detail}`,
  ]);
  return createElement("span", { class: "detail muted" }, policy, detail, ...reasons);
}

function blockerList(blockers: DecisionView["blockers"]): HTMLElement | null {
  if (blockers.length === 0) return null;
  return createElement(
    "ul",
    { class: "guards", "aria-label": "Reasons for the hold" },
    ...blockers.map(({ reason, detail }) =>
      createElement("li", {}, createElement("b", {}, humanize(reason)), createElement("span", {}, detail)),
    ),
  );
}
