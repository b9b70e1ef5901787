import { getJson, type NodeDocument } from "../api.ts";
import { byId, createElement, createFiller } from "../dom.ts";
import { glyphElement } from "../fleet/status-icon.ts";
import { formatAge, humanize } from "../format.ts";
import { commandButton, commandsAllowed } from "../panels/operator-commands.ts";
import { nodeFields, policyElement } from "./explanation.ts";
import { nodeHistoryElement } from "./node-history.ts";

/** The panel that explains one node. */
export interface Panel {
  /** Shows the explanation of a node; null: closes the panel. */
  open(id: string | null): void;
  /** Reloads the explanation of a node that may have changed; null: of any node. */
  refresh(id: string | null): void;
}

/** Narrower than this the panel covers the page. */
export const NARROW = matchMedia("(max-width: 1099px)");

/** Creates the panel. `onClose`: called when the user closes it, to restore the focus. */
export function createPanel(onClose: () => void): Panel {
  const panel = byId("panel");
  const title = createElement("h2", { id: "panel-title", tabindex: "-1" });
  const orders = createElement("div", { class: "panel-orders" });
  const body = createElement("div", { class: "panel-body", "aria-live": "off" });
  const fillTitle = createFiller(title);
  const fillOrders = createFiller(orders);
  const fillBody = createFiller(body);
  let shown: string | null = null;
  let asked = 0;

  const close = createElement(
    "button",
    { type: "button", class: "close", "aria-label": "Close the explanation", onclick: onClose },
    "✕",
  );
  panel.append(createElement("div", { class: "panel-head" }, title, orders, close), body);
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") onClose();
  });

  async function read(): Promise<void> {
    if (shown === null) return;
    const number = ++asked;
    const answer = await getJson<NodeDocument>(`nodes/${encodeURIComponent(shown)}`);
    // Another node may have been opened meanwhile.
    if (number !== asked) return;
    if (answer.ok) show(answer.value);
    else fillBody(answer.error, () => [createElement("p", { class: "problem", role: "alert" }, answer.error.message)]);
  }

  function show(node: NodeDocument): void {
    const status = node.known ? (node.status ?? "unknown") : "gone";
    fillTitle([node.name, status], () => [
      node.known ? glyphElement(status) : null,
      createElement("span", {}, node.name ?? node.id),
      createElement("span", { class: `status is-${status}` }, humanize(status)),
    ]);
    const isHeld = node.holds.length > 0;
    fillOrders([node.known, isHeld, commandsAllowed()], () => [
      node.known && !node.holds.some(({ kind }) => kind === "held") ? commandButton(holdCommand(node), "hold") : null,
      isHeld ? commandButton(releaseCommand(node), "release") : null,
    ]);
    const now = Date.parse(node.explained_at);
    // Ages are shown in seconds, so the panel is updated at most once a second.
    fillBody(node, () => [
      createElement("p", { class: "muted panel-id" }, [node.id, node.country, node.region].filter(Boolean).join(" · ")),
      ...node.holds.map((hold) =>
        createElement(
          "p",
          { class: "banner tone-wait" },
          createElement("b", {}, humanize(hold.kind)),
          createElement("span", {}, `${hold.reason}, ${formatAge(hold.at, now)}`),
        ),
      ),
      nodeFields(node, now),
      createElement("h3", {}, "Policies"),
      ...(node.policies.length === 0
        ? [createElement("p", { class: "muted" }, "No policy applies to this node.")]
        : node.policies.map((policy) => policyElement(policy, now))),
      createElement("h3", {}, "History"),
      nodeHistoryElement(node, now),
    ]);
  }

  /** On a narrow screen the panel covers the page, which is then inert for the keyboard too. */
  function setCovering(): void {
    const isCovering = shown !== null && NARROW.matches;
    for (const covered of document.querySelectorAll("header, .readonly, .banners, .summary, .card, footer")) {
      covered.toggleAttribute("inert", isCovering && covered !== panel);
    }
    document.body.classList.toggle("covered", isCovering);
  }
  NARROW.addEventListener("change", setCovering);

  return {
    open(id) {
      const isOther = id !== shown;
      shown = id;
      panel.hidden = id === null;
      setCovering();
      if (id === null || !isOther) return;
      fillTitle(id, () => [id]);
      fillOrders(null, () => []);
      fillBody(null, () => [createElement("p", { class: "muted" }, "asking…")]);
      panel.scrollTop = 0;
      title.focus({ preventScroll: !NARROW.matches });
      void read();
    },
    refresh(id) {
      if (id === null || id === shown) void read();
    },
  };
}

const holdCommand = ({ id, name }: NodeDocument) =>
  ({
    path: `nodes/${encodeURIComponent(id)}/hold`,
    name: "Hold",
    meaning: `No policy touches ${name ?? id} until it is released.`,
    hasReason: true,
  }) as const;

const releaseCommand = ({ id, name }: NodeDocument) =>
  ({
    path: `nodes/${encodeURIComponent(id)}/release`,
    name: "Release",
    meaning: `Policies may touch ${name ?? id} again.`,
    hasReason: false,
  }) as const;
