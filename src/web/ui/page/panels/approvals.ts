import type { ActionView } from "../../../api/row-views.ts";
import { policyElement } from "../activity/activity-elements.ts";
import { evidenceText, requestLabel } from "../activity/activity-lines.ts";
import { byId, createElement, fill, nodeLink } from "../dom.ts";
import { type FleetModel, nodeName } from "../fleet/fleet.ts";
import { countNoun, formatAge, formatDuration } from "../format.ts";
import { commandButton } from "./command-buttons.ts";

/** Interval at which the ages of requests and the times until they expire are updated. */
const REDRAW_INTERVAL_MS = 10_000;

/** Lists the actions that wait for approval, with buttons to approve and reject. */
export function showApprovals(actions: readonly ActionView[], fleet: FleetModel | null, now: number): void {
  byId("approvals-card").hidden = actions.length === 0;
  byId("approvals-count").textContent = countNoun(actions.length, "action");
  const names = actions.map(({ node }) => nodeName(fleet, node));
  fill(byId("approvals"), [actions, names, Math.floor(now / REDRAW_INTERVAL_MS)], () =>
    actions.map((action, index) => createElement("li", approvalElement(action, names[index]!, now))),
  );
}

/**
 * Creates the description of an action that waits for approval, with buttons to approve and reject, or of an approved one
 * that is not sent yet, with a button to reject.
 */
export function approvalElement(action: ActionView, name: string, now: number): HTMLElement {
  const { id, policy, node, step, created_at, expires_at } = action;
  const label = requestLabel(action.request);
  const path = `actions/${encodeURIComponent(id)}`;
  const approve = {
    path: `${path}/approve`,
    name: "Approve",
    meaning: `The ${label} of ${name} (${id}) is sent as soon as nothing else holds the node.`,
  };
  const reject = {
    path: `${path}/reject`,
    name: "Reject",
    meaning: `The ${label} of ${name} (${id}) is not executed, and is not requested again in this episode unless the node is released.`,
    hasReason: true,
  } as const;
  const isApproved = action.state === "approved";
  const status = isApproved ? "is approved, and is sent as soon as nothing else holds the node" : "waits for approval";
  const evidence = evidenceText(action.evidence);
  const expiry =
    expires_at === null ? "" : `, expires in ${formatDuration(Math.max(0, (Date.parse(expires_at) - now) / 1_000))}`;
  return createElement(
    "div.approval",
    createElement(
      "p",
      createElement("b", label),
      " of ",
      nodeLink(node, name, `approval ${id}`),
      createElement("span.muted", ` ${status}${expiry}`),
    ),
    createElement(
      "p",
      "requested by ",
      policyElement(policy, false),
      createElement("span.muted", `${formatAge(created_at, now)}, step ${step + 1}`),
    ),
    evidence === "" ? null : createElement("p.muted.detail", `when decided: ${evidence}`),
    createElement(
      "div.buttons",
      isApproved ? null : commandButton(approve, `approve ${id}`, "primary"),
      commandButton(reject, `reject ${id}`),
    ),
  );
}
