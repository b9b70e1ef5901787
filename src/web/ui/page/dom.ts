/** Attributes of an element as in HTML, and listeners such as `onclick`. */
type Attributes = Readonly<Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>>;

/** Content of an element. Null adds nothing, and a string becomes a text node. */
export type Child = Node | string | number | null;

/** Creates an element. A false or null attribute is omitted, a true one is empty. */
export function createElement<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children) if (child !== null) element.append(typeof child === "number" ? String(child) : child);
  return element;
}

/** Creates a link to the explanation of a node. */
export const nodeLink = (id: string, name: string, key: string): HTMLElement =>
  createElement("a", { href: `#node/${encodeURIComponent(id)}`, "data-k": `${key} ${id}` }, name);

/** Returns the element of index.html with an id. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element ${id}`);
  return element as T;
}

/** Replaces the children of an element. Focus and open details are kept on elements with the same `data-k`. */
export function replaceChildren(parent: HTMLElement, children: readonly Child[]): void {
  const focused = parent.contains(document.activeElement) ? elementKey(document.activeElement) : null;
  const opened = new Set([...parent.querySelectorAll("details[open]")].map(elementKey));
  parent.replaceChildren(
    ...children.filter((child) => child !== null).map((child) => (child instanceof Node ? child : String(child))),
  );
  for (const details of parent.querySelectorAll("details")) if (opened.has(elementKey(details))) details.open = true;
  if (focused !== null)
    parent.querySelector<HTMLElement>(`[data-k="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

/** Makes `children` the children of an element. Leaves existing ones in place. */
export function keepChildren(parent: HTMLElement, children: readonly HTMLElement[]): void {
  const focused = parent.contains(document.activeElement) ? elementKey(document.activeElement) : null;
  const wanted = new Set<Element>(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  for (const [index, child] of children.entries()) {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  }
  if (focused !== null && !parent.contains(document.activeElement)) {
    parent.querySelector<HTMLElement>(`[data-k="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
}

const elementKey = (element: Element | null): string | null => element?.getAttribute("data-k") ?? null;

/** Creates a function that updates an element only if its input changed. */
export function createFiller(parent: HTMLElement): (given: unknown, make: () => readonly Child[]) => void {
  let last: string | null = null;
  return (given, make) => {
    const text = JSON.stringify(given);
    if (text === last) return;
    replaceChildren(parent, make());
    last = text;
  };
}

/** Creates a bar for a share from 0 to 1. Its length is set as a property, because the CSP forbids style attributes. */
export function bar(share: number, attributes: Attributes = {}, ...children: readonly Child[]): HTMLElement {
  const inner = createElement("span", { class: "bar-fill" });
  inner.style.width = `${100 * clamp(share)}%`;
  return createElement("span", { ...attributes, class: `bar ${String(attributes.class ?? "")}` }, inner, ...children);
}

/** Creates a tick at a share of a bar. */
export function tick(share: number, title: string): HTMLElement {
  const mark = createElement("span", { class: "bar-tick", title });
  mark.style.left = `${100 * clamp(share)}%`;
  return mark;
}

const clamp = (share: number): number => Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0));
