import { getJson, type NodeDocument } from "../api.ts";
import { byId, createElement, createFiller } from "../dom.ts";
import { glyphElement } from "../fleet/status-icon.ts";
import { formatAge, humanize, timeOfDay } from "../format.ts";
import { approvalElement } from "../panels/approvals.ts";
import { externalLink } from "../panels/banners.ts";
import { commandButton } from "../panels/operator-commands.ts";
import { nodeFields, policyElement } from "./explanation.ts";
import { nodeHistoryElement } from "./node-history.ts";

/** Matches windows in which the panel covers the page. */
const NARROW = matchMedia("(max-width: 1099px)");
/** Elements that the panel covers on a narrow screen. */
const COVERED_ELEMENTS = "header, .disconnected, .readonly, .banners, .summary, .card, footer";

/** The panel that explains one node. */
export class NodePanel {
  readonly #panel = byId("panel");
  readonly #title = createElement("h2", { id: "panel-title", tabindex: "-1" });
  readonly #commands = createElement("div", { class: "panel-commands" });
  readonly #body = createElement("div", { class: "panel-body", "aria-live": "off" });
  readonly #fillTitle = createFiller(this.#title);
  readonly #fillCommands = createFiller(this.#commands);
  readonly #fillBody = createFiller(this.#body);
  /** Id of the node that is shown, or null if the panel is closed. */
  #shown: string | null = null;
  #requests = 0;
  #grafana: string | null = null;

  /** `onClose` is called when the user closes the panel. */
  constructor(onClose: () => void) {
    const close = createElement(
      "button",
      { type: "button", class: "close", "aria-label": "Close the explanation", onclick: onClose },
      "✕",
    );
    this.#panel.append(createElement("div", { class: "panel-head" }, this.#title, this.#commands, close), this.#body);
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") onClose();
    });
    NARROW.addEventListener("change", () => this.#coverPage());
  }

  /** Shows the explanation of a node, or closes the panel if it is null. */
  open(id: string | null): void {
    const isOther = id !== this.#shown;
    this.#shown = id;
    this.#panel.hidden = id === null;
    this.#coverPage();
    if (id === null || !isOther) return;
    this.#fillTitle(id, () => [id]);
    this.#fillCommands(null, () => []);
    this.#fillBody(null, () => [createElement("p", { class: "muted" }, "loading…")]);
    this.#panel.scrollTop = 0;
    this.#title.focus({ preventScroll: !NARROW.matches });
    void this.#load();
  }

  /** Sets the URL of Grafana for the link to the node's dashboard. Null if unknown. */
  linkTo(grafana: string | null): void {
    this.#grafana = grafana;
  }

  /** Reloads the explanation if it is about this node, or about any node if null. */
  refresh(id: string | null): void {
    if (id === null || id === this.#shown) void this.#load();
  }

  async #load(): Promise<void> {
    if (this.#shown === null) return;
    const request = ++this.#requests;
    const answer = await getJson<NodeDocument>(`nodes/${encodeURIComponent(this.#shown)}`);
    // Another node may have been opened in the meantime.
    if (request !== this.#requests) return;
    if (answer.ok) this.#show(answer.value);
    else {
      const { error } = answer;
      this.#fillBody(error, () => [createElement("p", { class: "problem", role: "alert" }, error.message)]);
    }
  }

  #show(node: NodeDocument): void {
    const status = node.known ? (node.status ?? "unknown") : "gone";
    this.#fillTitle([node.name, status], () => [
      node.known ? glyphElement(status) : null,
      createElement("span", {}, node.name ?? node.id),
      createElement("span", { class: `status is-${status}` }, humanize(status)),
    ]);
    const isHeld = node.holds.length > 0;
    this.#fillCommands([node.id, node.known, node.holds, this.#grafana], () => [
      this.#grafana === null ? null : externalLink("Grafana", dashboardOf(this.#grafana, node.id)),
      node.known && !node.holds.some(({ kind }) => kind === "held") ? commandButton(holdCommand(node), "hold") : null,
      isHeld ? commandButton(releaseCommand(node), "release") : null,
    ]);
    this.#fillBody(node, () => bodyElements(node));
  }

  /** Keeps keyboard focus out of the page while the panel covers it on a narrow screen. */
  #coverPage(): void {
    const isCovering = this.#shown !== null && NARROW.matches;
    for (const covered of document.querySelectorAll(COVERED_ELEMENTS)) {
      covered.toggleAttribute("inert", isCovering && covered !== this.#panel);
    }
    document.body.classList.toggle("covered", isCovering);
  }
}

function bodyElements(node: NodeDocument): readonly HTMLElement[] {
  const now = Date.parse(node.explained_at);
  const holds = node.holds.map(({ kind, reason, at, until }) =>
    createElement(
      "p",
      { class: "banner tone-wait" },
      createElement("b", {}, humanize(kind)),
      createElement(
        "span",
        {},
        `${reason}, ${formatAge(at, now)}${until === null ? "" : `, until ${timeOfDay(until, now)}`}`,
      ),
    ),
  );
  const approvals = node.actions
    .filter(({ state }) => state === "awaiting")
    .map((action) => approvalElement(action, node.name ?? node.id, now));
  const policies = node.policies.map((policy) => policyElement(policy, now));
  const none = createElement("p", { class: "muted" }, "No policy applies to this node.");
  return [
    createElement("p", { class: "muted panel-id" }, [node.id, node.country, node.region].filter(Boolean).join(" · ")),
    ...approvals,
    ...holds,
    nodeFields(node, now),
    createElement("h3", {}, "Policies"),
    ...(policies.length === 0 ? [none] : policies),
    createElement("h3", {}, "History"),
    nodeHistoryElement(node, now),
  ];
}

/** Returns the address of the dashboard of a node (see `grafana/`). */
const dashboardOf = (grafana: string, id: string): string =>
  `${grafana}/d/proxywarden-node?var-node=${encodeURIComponent(id)}`;

interface NodeName {
  readonly id: string;
  readonly name?: string | null;
}

/** Returns the command that holds a node. */
export const holdCommand = ({ id, name }: NodeName) =>
  ({
    path: `nodes/${encodeURIComponent(id)}/hold`,
    name: "Hold",
    meaning: `No policy acts on ${name ?? id} until it is released or the hold expires.`,
    hasReason: true,
    hasDuration: true,
  }) as const;

/** Returns the command that releases a node. */
export const releaseCommand = ({ id, name }: NodeName) =>
  ({
    path: `nodes/${encodeURIComponent(id)}/release`,
    name: "Release",
    meaning: `Policies may act on ${name ?? id} again.`,
    hasReason: false,
  }) as const;
