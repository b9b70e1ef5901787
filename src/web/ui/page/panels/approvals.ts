import type { ActionView } from "../../../api/row-views.ts";
import { policyElement } from "../activity/activity-elements.ts";
import { evidenceText, requestLabel } from "../activity/activity-lines.ts";
import { byId, createElement, createFiller, nodeLink } from "../dom.ts";
import type { FleetModel } from "../fleet/fleet.ts";
import { countNoun, formatAge } from "../format.ts";
import { commandButton } from "./operator-commands.ts";

const fillApprovals = createFiller(byId("approvals"));

/** Lists the actions that wait for approval, with buttons to approve and reject. */
export function showApprovals(actions: readonly ActionView[], fleet: FleetModel | null, now: number): void {
  byId("approvals-card").hidden = actions.length === 0;
  byId("approvals-count").textContent = countNoun(actions.length, "action");
  const names = actions.map(({ node }) => fleet?.byId.get(node)?.name ?? node);
  fillApprovals([actions, names, Math.floor(now / 10_000)], () =>
    actions.map((action, index) => approvalElement(action, names[index]!, now)),
  );
}

function approvalElement(action: ActionView, name: string, now: number): HTMLElement {
  const label = requestLabel(action.request);
  const path = `actions/${encodeURIComponent(action.id)}`;
  const approve = {
    path: `${path}/approve`,
    name: "Approve",
    meaning: `${label} of ${name} (${action.id}) is sent as soon as nothing else holds it.`,
    hasReason: false,
    node: { id: action.node, name },
  };
  const reject = {
    path: `${path}/reject`,
    name: "Reject",
    meaning: `${label} of ${name} (${action.id}) is not executed, and is not requested again in this episode.`,
    hasReason: true,
    node: { id: action.node, name },
  };
  const evidence = evidenceText(action.evidence);
  return createElement(
    "li",
    {},
    createElement(
      "p",
      {},
      createElement("b", {}, label),
      " of ",
      nodeLink(action.node, name, `approval ${action.id}`),
      createElement("span", { class: "muted" }, `, ${formatAge(action.created_at, now)}`),
    ),
    createElement("p", {}, policyElement({ policy: action.policy, isDryRun: false })),
    evidence === "" ? null : createElement("p", { class: "muted detail" }, evidence),
    createElement(
      "div",
      { class: "buttons" },
      commandButton(approve, `approve ${action.id}`, "primary"),
      commandButton(reject, `reject ${action.id}`),
    ),
  );
}
