import { createElement } from "../dom.ts";

/**
 * Announces the node under the cursor. Screen readers announce an option that becomes active, not one whose text
 * changes, so two options alternate.
 */
export class Announcer {
  readonly #listbox: HTMLElement;
  readonly #options: readonly HTMLElement[];
  #active = 0;

  /** Adds the options to `parent`, within the element that has the focus. */
  constructor(parent: HTMLElement, listbox: HTMLElement) {
    this.#listbox = listbox;
    this.#options = ["a", "b"].map((id) =>
      createElement("div", { id: `option-${id}`, role: "option", "aria-selected": "false" }, "no node yet"),
    );
    parent.append(...this.#options);
  }

  announce(text: string, index: number, total: number): void {
    this.#options[this.#active]!.setAttribute("aria-selected", "false");
    this.#active = 1 - this.#active;
    const option = this.#options[this.#active]!;
    option.textContent = text;
    option.setAttribute("aria-selected", "true");
    option.setAttribute("aria-posinset", String(index + 1));
    option.setAttribute("aria-setsize", String(total));
    this.#listbox.setAttribute("aria-activedescendant", option.id);
  }
}
