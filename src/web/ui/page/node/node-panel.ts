import { ask, type NodeDocument } from "../api.ts";
import { byId, filler, h } from "../dom.ts";
import { factsOf, policyOf } from "./explanation.ts";
import { glyph } from "../fleet/status-icon.ts";
import { orderButton, takesOrders } from "../panels/operator-commands.ts";
import { historyOf } from "./node-history.ts";
import { ago, words } from "../format.ts";

/** The explanation of one node, beside the fleet. */
export interface Panel {
  /** Explains a node; null: none. */
  open(id: string | null): void;
  /** Something of a node may be other than it was; null: of any. */
  refresh(id: string | null): void;
}

/** Narrower than this the panel covers the page. */
export const NARROW = matchMedia("(max-width: 1099px)");

/** Makes the panel. `onClose`: it was closed by a person; the focus goes back to where it belongs. */
export function createPanel(onClose: () => void): Panel {
  const panel = byId("panel");
  const title = h("h2", { id: "panel-title", tabindex: "-1" });
  const orders = h("div", { class: "panel-orders" });
  const body = h("div", { class: "panel-body", "aria-live": "off" });
  const fillTitle = filler(title);
  const fillOrders = filler(orders);
  const fillBody = filler(body);
  let shown: string | null = null;
  let asked = 0;

  const close = h(
    "button",
    { type: "button", class: "close", "aria-label": "Close the explanation", onclick: onClose },
    "✕",
  );
  panel.append(h("div", { class: "panel-head" }, title, orders, close), body);
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") onClose();
  });

  async function read(): Promise<void> {
    if (shown === null) return;
    const number = ++asked;
    const answer = await ask<NodeDocument>(`nodes/${encodeURIComponent(shown)}`);
    // Another node may have been asked for meanwhile.
    if (number !== asked) return;
    if (answer.ok) show(answer.value);
    else fillBody(answer.error, () => [h("p", { class: "problem", role: "alert" }, answer.error.message)]);
  }

  function show(node: NodeDocument): void {
    const status = node.known ? (node.status ?? "unknown") : "gone";
    fillTitle([node.name, status], () => [
      node.known ? glyph(status) : null,
      h("span", {}, node.name ?? node.id),
      h("span", { class: `status is-${status}` }, words(status)),
    ]);
    const isHeld = node.holds.length > 0;
    fillOrders([node.known, isHeld, takesOrders()], () => [
      node.known && !node.holds.some(({ kind }) => kind === "held") ? orderButton(holdOf(node), "hold") : null,
      isHeld ? orderButton(releaseOf(node), "release") : null,
    ]);
    const now = Date.parse(node.explained_at);
    // What only grew older is no news: ages are shown to the second, so this is filled at most once a second.
    fillBody(node, () => [
      h("p", { class: "muted panel-id" }, [node.id, node.country, node.region].filter(Boolean).join(" · ")),
      ...node.holds.map((hold) =>
        h(
          "p",
          { class: "banner tone-wait" },
          h("b", {}, words(hold.kind)),
          h("span", {}, `${hold.reason}, ${ago(hold.at, now)}`),
        ),
      ),
      factsOf(node, now),
      h("h3", {}, "Policies"),
      ...(node.policies.length === 0
        ? [h("p", { class: "muted" }, "No policy applies to this node.")]
        : node.policies.map((policy) => policyOf(policy, now))),
      h("h3", {}, "History"),
      historyOf(node, now),
    ]);
  }

  /** On a narrow screen it covers all else, which is then out of reach of the keyboard, too. */
  function cover(): void {
    const isCovering = shown !== null && NARROW.matches;
    for (const covered of document.querySelectorAll("header, .readonly, .banners, .summary, .card, footer")) {
      covered.toggleAttribute("inert", isCovering && covered !== panel);
    }
    document.body.classList.toggle("covered", isCovering);
  }
  NARROW.addEventListener("change", cover);

  return {
    open(id) {
      const isOther = id !== shown;
      shown = id;
      panel.hidden = id === null;
      cover();
      if (id === null || !isOther) return;
      fillTitle(id, () => [id]);
      fillOrders(null, () => []);
      fillBody(null, () => [h("p", { class: "muted" }, "asking…")]);
      panel.scrollTop = 0;
      title.focus({ preventScroll: !NARROW.matches });
      void read();
    },
    refresh(id) {
      if (id === null || id === shown) void read();
    },
  };
}

const holdOf = ({ id, name }: NodeDocument) =>
  ({
    path: `nodes/${encodeURIComponent(id)}/hold`,
    name: "Hold",
    meaning: `No policy touches ${name ?? id} until it is released.`,
    hasReason: true,
  }) as const;

const releaseOf = ({ id, name }: NodeDocument) =>
  ({
    path: `nodes/${encodeURIComponent(id)}/release`,
    name: "Release",
    meaning: `Policies may touch ${name ?? id} again.`,
    hasReason: false,
  }) as const;
