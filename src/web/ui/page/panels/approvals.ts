import type { ActionView } from "../../../api/row-views.ts";
import { policyElement } from "../activity/activity-elements.ts";
import { evidenceText, requestLabel } from "../activity/activity-lines.ts";
import { byId, createElement, createFiller, nodeLink } from "../dom.ts";
import type { FleetModel } from "../fleet/fleet.ts";
import { countNoun, formatAge, formatDuration } from "../format.ts";
import { commandButton } from "./operator-commands.ts";

const fillApprovals = createFiller(byId("approvals"));

/** Lists the actions that wait for approval, with buttons to approve and reject. */
export function showApprovals(actions: readonly ActionView[], fleet: FleetModel | null, now: number): void {
  byId("approvals-card").hidden = actions.length === 0;
  byId("approvals-count").textContent = countNoun(actions.length, "action");
  const names = actions.map(({ node }) => fleet?.byId.get(node)?.name ?? node);
  fillApprovals([actions, names, Math.floor(now / 10_000)], () =>
    actions.map((action, index) => createElement("li", {}, approvalElement(action, names[index]!, now))),
  );
}

/** Creates the description of an action that waits for approval, with buttons to approve and reject. */
export function approvalElement(action: ActionView, name: string, now: number): HTMLElement {
  const label = requestLabel(action.request);
  const path = `actions/${encodeURIComponent(action.id)}`;
  const approve = {
    path: `${path}/approve`,
    name: "Approve",
    meaning: `The ${label} of ${name} (${action.id}) is sent as soon as nothing else holds it.`,
    hasReason: false,
  };
  const reject = {
    path: `${path}/reject`,
    name: "Reject",
    meaning: `The ${label} of ${name} (${action.id}) is not executed, and is not requested again in this episode.`,
    hasReason: true,
  };
  const evidence = evidenceText(action.evidence);
  return createElement(
    "div",
    { class: "approval" },
    createElement(
      "p",
      {},
      createElement("b", {}, label),
      " of ",
      nodeLink(action.node, name, `approval ${action.id}`),
      createElement("span", { class: "muted" }, ` waits for approval${expiryText(action, now)}`),
    ),
    createElement(
      "p",
      {},
      "requested by ",
      policyElement({ policy: action.policy, isDryRun: false }),
      createElement("span", { class: "muted" }, `${formatAge(action.created_at, now)}, step ${action.step + 1}`),
    ),
    evidence === "" ? null : createElement("p", { class: "muted detail" }, `when decided: ${evidence}`),
    createElement(
      "div",
      { class: "buttons" },
      commandButton(approve, `approve ${action.id}`, "primary"),
      commandButton(reject, `reject ${action.id}`),
    ),
  );
}

function expiryText({ expires_at: at }: ActionView, now: number): string {
  return at === null ? "" : `, expires in ${formatDuration(Math.max(0, (Date.parse(at) - now) / 1_000))}`;
}
