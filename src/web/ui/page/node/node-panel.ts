import { getJson, type NodeDocument, type Status } from "../api.ts";
import { byId, createElement, fill } from "../dom.ts";
import { glyphElement } from "../fleet/status-icon.ts";
import { humanize, sinceText } from "../format.ts";
import { approvalElement } from "../panels/approvals.ts";
import { externalLink } from "../panels/banners.ts";
import { commandButton } from "../panels/command-buttons.ts";
import { nodeFields, policyElement } from "./explanation.ts";
import { nodeHistoryElement } from "./node-history.ts";

/** Matches windows in which the panel covers the page. */
const NARROW = matchMedia("(max-width: 1099px)");
/** Elements that the panel covers on a narrow screen. */
const COVERED_ELEMENTS = "header, .disconnected, .readonly, .banners, .summary, .card, footer";

/** The panel that explains one node. */
export class NodePanel {
  readonly #panel = byId("panel");
  readonly #title = byId("panel-title");
  readonly #commands = byId("panel-commands");
  readonly #body = byId("panel-body");
  /** Id of the node that is shown, or null if the panel is closed. */
  #shown: string | null = null;
  #requests = 0;
  /** URL of Grafana for the link to the node's dashboard, or null if not configured. */
  #grafana: string | null = null;
  /** Whether a node that the daemon does not list is gone. A standby lists none, as does a leader before its first walk. */
  #isFleetKnown = false;

  /** `onClose` is called when the user closes the panel. */
  constructor(onClose: () => void) {
    byId("panel-close").addEventListener("click", onClose);
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
    fill(this.#title, id, () => [id]);
    fill(this.#commands, null, () => []);
    fill(this.#body, null, () => [createElement("p.muted", "loading…")]);
    this.#panel.scrollTop = 0;
    this.#title.focus({ preventScroll: !NARROW.matches });
    void this.#load();
  }

  /** Sets what the panel shows from the status of the daemon. The next {@link refresh} shows it. */
  setStatus({ links, nodes_complete }: Status): void {
    this.#grafana = links.grafana;
    this.#isFleetKnown = nodes_complete;
  }

  /** Reloads the explanation if it is about this node. Null means any node. */
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
      fill(this.#body, error, () => [createElement("p.problem", { role: "alert" }, error.message)]);
    }
  }

  #show(node: NodeDocument): void {
    const status = !node.known && this.#isFleetKnown ? "gone" : (node.status ?? "unknown");
    fill(this.#title, [node.name, status], () => [
      node.known ? glyphElement(status) : null,
      createElement("span", node.name ?? node.id),
      createElement(`span.status.is-${status}`, humanize(status)),
    ]);
    fill(this.#commands, [node.id, node.known, node.holds, this.#grafana], () => [
      this.#grafana === null ? null : externalLink("Grafana", dashboardOf(this.#grafana, node.id)),
      node.known && !node.holds.some(({ kind }) => kind === "held") ? commandButton(holdCommand(node), "hold") : null,
      node.holds.length === 0 ? null : commandButton(releaseCommand(node), "release"),
    ]);
    fill(this.#body, node, () => bodyElements(node));
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
  // The reason of a hold names the operator.
  const holds = node.holds.map(({ kind, reason, at, until }) =>
    createElement(
      "p.banner.tone-wait",
      createElement("b", humanize(kind)),
      createElement("span", `${sinceText(at, null, until, now)}: ${reason}`),
    ),
  );
  const approvals = node.actions
    .filter(({ state }) => state === "awaiting" || state === "approved")
    .map((action) => approvalElement(action, node.name ?? node.id, now));
  const policies = node.policies.map((policy) => policyElement(policy, now));
  const none = createElement("p.muted", "No policy is evaluated for this node.");
  return [
    createElement("p.muted.panel-id", [node.id, node.country, node.region].filter(Boolean).join(" · ")),
    ...approvals,
    ...holds,
    nodeFields(node, now),
    createElement("h3", "Policies"),
    ...(policies.length === 0 ? [none] : policies),
    createElement("h3", "History"),
    nodeHistoryElement(node),
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
  }) as const;
