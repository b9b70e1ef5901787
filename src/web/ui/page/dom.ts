/** Attributes of an element as in HTML, and listeners such as `onclick`. */
type Attributes = Readonly<Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>>;

/** Content of an element. Null adds nothing, and a string becomes a text node. */
export type Child = Node | string | null;

/**
 * Creates an element from its tag and classes, such as `p.empty.muted`, with attributes and children in any order. A
 * false or null attribute is omitted, a true one is empty.
 */
export function createElement<K extends keyof HTMLElementTagNameMap>(
  selector: K | `${K}.${string}`,
  ...content: readonly (Attributes | Child)[]
): HTMLElementTagNameMap[K] {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag as K);
  element.classList.add(...classes);
  for (const part of content) {
    if (typeof part === "string" || part instanceof Node) element.append(part);
    else if (part !== null) setAttributes(element, part);
  }
  return element;
}

/** Sets the attributes of an element, as {@link createElement} does. */
export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/** Creates a button. `key` identifies it among its siblings, so that it keeps the focus when they are replaced. */
export const createButton = (
  label: string,
  key: string,
  onclick: () => void,
  attributes: Attributes = {},
): HTMLButtonElement => createElement("button", { type: "button", "data-k": key, onclick, ...attributes }, label);

/** Shows options as buttons, one of which is chosen. `labels` has the labels that differ from the name of the option. */
export function showChoice<Option extends string>(
  parent: HTMLElement,
  options: readonly Option[],
  chosen: Option,
  onChoose: (option: Option) => void,
  labels: Readonly<Record<string, string>> = {},
): void {
  fill(parent, chosen, () =>
    options.map((option) => {
      const state = { "aria-pressed": String(option === chosen) };
      return createButton(labels[option] ?? option, option, () => onChoose(option), state);
    }),
  );
}

/** Creates the entries of a definition list, each in an element of its own. */
export const definitions = (entries: readonly (readonly [term: string, value: Child])[]): readonly HTMLElement[] =>
  entries.map(([term, value]) => createElement("div", createElement("dt", term), createElement("dd", value)));

/** Creates a link to the explanation of a node. */
export const nodeLink = (id: string, name: string, key: string): HTMLElement =>
  createElement("a", { href: `#node/${encodeURIComponent(id)}`, "data-k": `${key} ${id}` }, name);

/** Returns the element of index.html with an id. Throws if there is none. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element ${id}`);
  return element as T;
}

/** Replaces the children of an element. Focus and open details are kept on elements with the same `data-k`. */
export function replaceChildren(parent: HTMLElement, children: readonly Child[]): void {
  keepFocus(parent, () => {
    const opened = new Set([...parent.querySelectorAll("details[open]")].map(elementKey));
    parent.replaceChildren(...children.filter((child) => child !== null));
    for (const details of parent.querySelectorAll("details")) if (opened.has(elementKey(details))) details.open = true;
  });
}

/**
 * Replaces the children of an element, but keeps those nodes that are equal to the new ones at the same place, so that
 * selected text stays selected. Details with a known `data-k` stay open or closed. A kept element keeps its listeners, so
 * they may depend on nothing but its attributes.
 */
export function updateChildren(parent: HTMLElement, children: readonly Node[]): void {
  const wanted = document.createDocumentFragment();
  wanted.append(...children);
  const known = new Map([...parent.querySelectorAll("details")].map((details) => [elementKey(details), details.open]));
  for (const details of wanted.querySelectorAll("details")) {
    details.open = known.get(elementKey(details)) ?? details.open;
  }
  keepFocus(parent, () => updateNodes(parent, children));
}

function updateNodes(parent: Node, children: readonly Node[]): void {
  for (const [index, child] of children.entries()) {
    const known = parent.childNodes[index];
    if (known === undefined) parent.appendChild(child);
    else if (known instanceof Text && child instanceof Text) {
      if (known.data !== child.data) known.data = child.data;
    } else if (known.cloneNode().isEqualNode(child.cloneNode())) updateNodes(known, [...child.childNodes]);
    else parent.replaceChild(child, known);
  }
  while (parent.childNodes.length > children.length) parent.lastChild!.remove();
}

/** Makes `children` the children of an element. Those that it already has stay in the document. */
export function keepChildren(parent: HTMLElement, children: readonly HTMLElement[]): void {
  keepFocus(parent, () => {
    const wanted = new Set<Element>(children);
    for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
    for (const [index, child] of children.entries()) {
      if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
    }
  });
}

/** Changes the children of an element. If the focused one is removed, the new one with the same `data-k` is focused. */
function keepFocus(parent: HTMLElement, change: () => void): void {
  const focused = parent.contains(document.activeElement) ? elementKey(document.activeElement) : null;
  change();
  if (focused === null || parent.contains(document.activeElement)) return;
  parent.querySelector<HTMLElement>(`[data-k="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

const elementKey = (element: Element | null): string | null => element?.getAttribute("data-k") ?? null;

/** Input of the last {@link fill} of each element, as JSON. */
const lastInputs = new WeakMap<HTMLElement, string>();

/** Replaces the children of an element if the input that they show changed. */
export function fill(parent: HTMLElement, input: unknown, make: () => readonly Child[]): void {
  const text = JSON.stringify(input);
  if (text === lastInputs.get(parent)) return;
  replaceChildren(parent, make());
  lastInputs.set(parent, text);
}

/** The items of the last {@link fillEach} of each element, as JSON, with their elements. */
const lastItems = new WeakMap<HTMLElement, readonly (readonly [text: string, child: HTMLElement])[]>();

/** Shows each item as a child of an element. Recreates only the children whose item changed. */
export function fillEach<Item>(parent: HTMLElement, items: readonly Item[], make: (item: Item) => HTMLElement): void {
  const last = lastItems.get(parent) ?? [];
  const shown = items.map((item, index) => {
    const text = JSON.stringify(item);
    const known = last[index];
    return known?.[0] === text ? known : ([text, make(item)] as const);
  });
  lastItems.set(parent, shown);
  keepChildren(
    parent,
    shown.map(([, child]) => child),
  );
}

/** Creates a bar for a share from 0 to 1. Its length is set as a property, because the CSP forbids style attributes. */
export function bar(share: number, tone: string, attributes: Attributes, ...children: readonly Child[]): HTMLElement {
  const inner = createElement("span.bar-fill");
  inner.style.width = `${100 * clamp(share)}%`;
  return createElement(`span.bar.tone-${tone}`, attributes, inner, ...children);
}

/** Creates a tick at a share of a bar. */
export function tick(share: number, title: string): HTMLElement {
  const mark = createElement("span.bar-tick", { title });
  mark.style.left = `${100 * clamp(share)}%`;
  return mark;
}

const clamp = (share: number): number => Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0));

/** Returns the color of an element in `parent` with a style or class, for a canvas, which can't use the style sheet. */
export function resolveColor(parent: HTMLElement, look: { readonly color?: string; readonly class?: string }): string {
  const probe = createElement("i", { class: look.class });
  probe.style.color = look.color ?? "";
  // In forced colors mode all texts have the same color.
  probe.style.forcedColorAdjust = "none";
  parent.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
