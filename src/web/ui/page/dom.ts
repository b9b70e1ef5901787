/** What an element is made of: attributes as HTML has them, and listeners as `onclick`. */
export type Attributes = Readonly<
  Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>
>;

/** What stands in an element; null: nothing. Text is text, whatever it holds. */
export type Child = Node | string | number | null;

/** Makes an element. A false or null attribute is left out, a true one is empty. */
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

/** The element of that id, which index.html has. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element ${id}`);
  return element as T;
}

/**
 * Puts children in the place of those that an element has. What had the focus has it again, and what was opened stays so,
 * where it has the same `data-k`.
 */
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

const elementKey = (element: Element | null): string | null => element?.getAttribute("data-k") ?? null;

/** A function that fills an element when what it is given differs from last time, and else leaves it alone. */
export function createFiller(parent: HTMLElement): (given: unknown, make: () => readonly Child[]) => void {
  let last: string | null = null;
  return (given, make) => {
    const text = JSON.stringify(given);
    if (text === last) return;
    last = text;
    replaceChildren(parent, make());
  };
}

/** A bar that shows a share, 0 to 1; its length is set as a property, for the page allows no style attributes. */
export function bar(share: number, attributes: Attributes = {}, ...children: readonly Child[]): HTMLElement {
  const inner = createElement("span", { class: "bar-fill" });
  inner.style.width = `${100 * clamp(share)}%`;
  return createElement("span", { ...attributes, class: `bar ${String(attributes.class ?? "")}` }, inner, ...children);
}

/** A tick at a share of a bar. */
export function tick(share: number, title: string): HTMLElement {
  const mark = createElement("span", { class: "bar-tick", title });
  mark.style.left = `${100 * clamp(share)}%`;
  return mark;
}

const clamp = (share: number): number => Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0));
