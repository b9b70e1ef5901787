import type { DecisionView } from "../../../api/row-views.ts";
import { type Child, createButton, createElement, definitions, nodeLink } from "../dom.ts";
import { countNoun, humanize, timeOfDay, withLocalTimes, withNodeName } from "../format.ts";
import type { ActivityLine } from "./activity-lines.ts";
import { type Incident, latestByNode } from "./incidents.ts";

/** Display options of a line of the list. */
interface LineView {
  readonly isOpen: boolean;
  nameOf(node: string): string;
  onToggle(): void;
}

/** Creates the line of a decision, an action or an operator command. */
export function lineElement(line: ActivityLine, view: LineView): HTMLElement {
  const { key, node, policy, summary, blockers } = line;
  const title = [node === null ? null : nodeLink(node, view.nameOf(node), key), summary === "" ? null : ` ${summary}`];
  const detail = node === null ? line.detail : namedDetail(line, node, view.nameOf(node));
  const source = policy === null ? null : policyElement(policy, line.isDryRun);
  return expandable(line, view, title, detailElement(detail, blockers, source), () => [
    createElement("dl.fields", ...definitions(line.facts.map(([name, value]) => [name, withLocalTimes(value)]))),
    blockers.length === 0 ? null : blockerList("Reasons for the hold", blockers),
  ]);
}

/** Returns the detail of a line with the name of its node. The evidence of a decision keeps the id that a policy read. */
export const namedDetail = ({ kind, detail }: ActivityLine, node: string, name: string | null): string =>
  kind === "decisions" ? detail : withNodeName(detail, node, name);

/** Creates the line of an incident. An open line lists its nodes. */
export function incidentElement(incident: Incident, view: LineView): HTMLElement {
  const { key, lines } = incident;
  const newest = lines[0]!;
  const nodes = latestByNode(incident);
  const since = ` since ${timeOfDay(lines.at(-1)!.at)}`;
  const title = [createElement("b", countNoun(nodes.length, "node")), since];
  const reasons = [...new Set(newest.blockers.map(({ reason }) => humanize(reason)))].join(", ");
  const policy = policyElement(newest.policy!, newest.isDryRun);
  const body = createElement("span.detail.muted", policy, createElement("b", reasons));
  return expandable({ ...newest, key }, view, title, body, () => [
    createElement(
      "ul.incident-nodes",
      ...nodes.map(({ node, at, blockers }) => {
        const hold = withLocalTimes(` ${at}, ${blockers.map((blocker) => blocker.detail).join("; ")}`);
        return createElement("li", nodeLink(node!, view.nameOf(node!), key), createElement("span.muted", hold));
      }),
    ),
  ]);
}

/** Creates a line with a button that shows and hides `more`. */
function expandable(
  line: ActivityLine,
  { isOpen, onToggle }: LineView,
  title: readonly Child[],
  body: Child,
  more: () => readonly Child[],
): HTMLElement {
  const what = createElement("span.what", ...title);
  const label = `Details: ${line.badge} ${what.textContent}, ${timeOfDay(line.at)}`;
  const state = { class: "expand", "aria-label": label, "aria-expanded": String(isOpen) };
  const toggle = createButton(isOpen ? "▾" : "▸", `expand ${line.key}`, onToggle, state);
  const element = rowElement(line, [what, toggle], [body, ...(isOpen ? more() : [])]);
  element.classList.toggle("is-open", isOpen);
  return element;
}

/** Creates a line of a list: time, badge and title, and further content below them. */
export const rowElement = (
  { at, tone, badge }: Pick<ActivityLine, "at" | "tone" | "badge">,
  title: readonly Child[],
  body: readonly Child[],
): HTMLElement =>
  createElement(
    "li",
    createElement("time", { datetime: at }, timeOfDay(at)),
    createElement(`span.badge.tone-${tone}`, badge),
    ...title,
    createElement("div.line-body", ...body),
  );

/** Creates the name of a policy, after the word "policy" because the name may also be that of a status. */
export const policyElement = (policy: string, isDryRun: boolean): HTMLElement =>
  createElement("span.policy-name", "policy ", createElement("b", policy), isDryRun ? " (dry run) " : " ");

/** Returns the policy, the detail and the blockers of a line, or null if there are none. */
export function detailElement(
  detail: string,
  blockers: DecisionView["blockers"],
  policy: HTMLElement | null = null,
): HTMLElement | null {
  if (detail === "" && blockers.length === 0 && policy === null) return null;
  const reasons = blockers.flatMap((blocker, index) => [
    index === 0 ? "" : " · ",
    createElement("b", humanize(blocker.reason)),
    ` ${withLocalTimes(blocker.detail)}`,
  ]);
  return createElement("span.detail.muted", policy, withLocalTimes(detail), ...reasons);
}

/** Creates a list of blockers, with how each ends if known. */
export const blockerList = (
  label: string,
  blockers: readonly (DecisionView["blockers"][number] & { readonly ends?: string })[],
): HTMLElement =>
  createElement(
    "ul.guards",
    { "aria-label": label },
    ...blockers.map(({ reason, detail, ends }) => {
      const text = ends === undefined ? detail : `${detail}; ends ${ends}`;
      return createElement("li", createElement("b", humanize(reason)), createElement("span", withLocalTimes(text)));
    }),
  );
