import { getJson, type NodeDocument, type RequestError, type Status } from "../api.ts";
import { byId, createElement, fill, updateChildren } from "../dom.ts";
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
const COVERED_ELEMENTS = ".skip, header, .disconnected, .readonly, .banners, .summary, .card, footer";

/** Why a response can't be shown. */
const UNREADABLE = "the page can't show the response; if the daemon was upgraded, reload the page";

/** The panel that explains one node. */
export class NodePanel {
  readonly #panel = byId("panel");
  /** The column of the panel, which scrolls unless the screen is narrow. */
  readonly #column = byId("right");
  readonly #title = byId("panel-title");
  readonly #commands = byId("panel-commands");
  readonly #problem = byId("panel-problem");
  readonly #body = byId("panel-body");
  /** Id of the node that is shown, or null if the panel is closed. */
  #shown: string | null = null;
  /** The element outside of the panel that had the focus when a node was opened. */
  #opener = document.body;
  /** How far the column was scrolled when the panel was opened. */
  #scrollTop = 0;
  /** Number of times the panel was opened or closed. */
  #changes = 0;
  #isLoading = false;
  /** Whether an explanation of the node is shown. */
  #isExplained = false;
  /** Whether the explanation is to be loaded, or loaded again after the current request. */
  #isDue = false;
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

  /** Shows the explanation of a node. Null closes the panel and returns the focus. */
  open(id: string | null): void {
    if (id === this.#shown) return;
    const hadFocus = this.#panel.contains(document.activeElement);
    if (!hadFocus) this.#opener = document.activeElement as HTMLElement;
    if (this.#shown === null) this.#scrollTop = this.#column.scrollTop;
    this.#shown = id;
    this.#changes++;
    this.#isLoading = false;
    this.#panel.hidden = id === null;
    this.#coverPage();
    if (id === null) {
      this.#column.scrollTop = this.#scrollTop;
      if (hadFocus) this.#returnFocus();
      return;
    }
    this.#problem.textContent = "";
    this.#showText(id, "loading…");
    this.#panel.scrollTop = this.#column.scrollTop = 0;
    this.#title.focus({ preventScroll: !NARROW.matches });
    void this.#load();
  }

  /**
   * Moves the focus back to where it was when the node was opened, or to an element with the same `data-k` if that was
   * replaced. If none can have the focus, the grid gets it or, while it is hidden, the search.
   */
  #returnFocus(): void {
    const key = this.#opener.getAttribute("data-k");
    const replacements = key === null ? [] : document.querySelectorAll<HTMLElement>(`[data-k="${CSS.escape(key)}"]`);
    for (const element of [this.#opener, ...replacements, byId("cells"), byId("search")]) {
      element.focus({ preventScroll: true });
      if (document.activeElement !== element || element === document.body) continue;
      // The column may have been scrolled while another node was shown.
      if (this.#column.contains(element)) element.scrollIntoView({ block: "nearest" });
      return;
    }
  }

  /** Shows a text instead of an explanation, or nothing if it is empty. */
  #showText(id: string, text: string): void {
    this.#isExplained = false;
    fill(this.#title, id, () => [id]);
    fill(this.#commands, null, () => []);
    updateChildren(this.#body, text === "" ? [] : [createElement("p.muted", text)]);
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

  /** Loads and shows the explanation. If called while it is being loaded, loads it again afterwards. */
  async #load(): Promise<void> {
    const [id, changes] = [this.#shown, this.#changes];
    this.#isDue = true;
    if (id === null || this.#isLoading) return;
    this.#isLoading = true;
    try {
      while (this.#isDue) {
        this.#isDue = false;
        const answer = await getJson<NodeDocument>(`nodes/${encodeURIComponent(id)}`);
        // Another node may have been opened in the meantime.
        if (changes !== this.#changes) return;
        const hadFocus = this.#panel.contains(document.activeElement);
        if (answer.ok) this.#show(answer.value);
        else this.#showProblem(id, answer.error);
        // The focused element may be gone.
        if (hadFocus && !this.#panel.contains(document.activeElement)) this.#title.focus({ preventScroll: true });
      }
    } catch (error) {
      this.#showProblem(id, { status: 0, message: UNREADABLE });
      reportError(error);
    } finally {
      if (changes === this.#changes) this.#isLoading = false;
    }
  }

  #show(node: NodeDocument): void {
    const status = !node.known && this.#isFleetKnown ? "gone" : (node.status ?? "unknown");
    fill(this.#title, [node.name, node.known, status], () => [
      node.known ? glyphElement(status) : null,
      createElement("span", node.name ?? node.id),
      createElement("span.status", humanize(status)),
    ]);
    const canHold = status !== "gone" && !node.holds.some(({ kind }) => kind === "held");
    const canRelease = node.holds.length > 0 || isStepRejected(node);
    fill(this.#commands, [node.id, node.name, canHold, canRelease, this.#grafana], () => [
      this.#grafana === null ? null : externalLink("Grafana", dashboardOf(this.#grafana, node.id)),
      canHold ? commandButton(holdCommand(node), "hold") : null,
      canRelease ? commandButton(releaseCommand(node), "release") : null,
    ]);
    updateChildren(this.#body, bodyElements(node));
    this.#problem.textContent = "";
    this.#isExplained = true;
  }

  /** Shows why the explanation could not be read. An earlier one stays, unless the daemon no longer knows the node. */
  #showProblem(id: string, { status, message }: RequestError): void {
    if (status === 404 || !this.#isExplained) this.#showText(id, "");
    const text = `${this.#isExplained ? "Not up to date: " : ""}${message}`;
    // A screen reader announces each change of the text.
    if (this.#problem.textContent !== text) this.#problem.textContent = text;
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

/** Returns whether an operator rejected the current step of an open episode. A release lifts the rejection. */
const isStepRejected = ({ policies, actions }: NodeDocument): boolean =>
  policies.some(({ episode }) =>
    actions.some(({ state, episode: id, step }) => state === "rejected" && id === episode?.id && step === episode.step),
  );

function bodyElements(node: NodeDocument): readonly HTMLElement[] {
  const now = Date.parse(node.explained_at);
  // The reason of a hold names the operator.
  const holds = node.holds.map(({ kind, policy, reason, at, until }) => {
    const scope = policy === null ? "" : `policy ${policy}, `;
    const text = `${scope}${sinceText(at, null, until, now)}: ${reason}`;
    return createElement("p.banner.tone-wait", createElement("b", humanize(kind)), createElement("span", text));
  });
  const approvals = node.actions
    .filter(({ state }) => state === "awaiting" || state === "approved")
    .map((action) => approvalElement(action, node.name ?? node.id, now));
  const policies = node.policies.map((policy) => policyElement(policy, node.known, now));
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
