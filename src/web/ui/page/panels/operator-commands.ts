import { postCommand } from "../api.ts";
import { byId, createElement, replaceChildren } from "../dom.ts";

/** An operator command. */
export interface OperatorCommand {
  /** Below `api/v1/`. */
  readonly path: string;
  /** Label of the button. */
  readonly name: string;
  /** Its meaning in one sentence. */
  readonly meaning: string;
  readonly hasReason: boolean;
}

/** The token is stored for this tab until it is closed. */
const TOKEN_KEY = "proxywarden.token";
const REASON_CHARS_MAX = 500;
const TOAST_MS = 8_000;

const commandState = { isOpen: false, onDone: () => {} };

/** Whether operators are configured; every status says so. */
export function setCommandsAllowed(isAllowed: boolean): void {
  commandState.isOpen = isAllowed;
}

/** Returns whether operators are configured. */
export const commandsAllowed = (): boolean => commandState.isOpen;

/** Called after every command that succeeded. */
export function onCommandDone(then: () => void): void {
  commandState.onDone = then;
}

/** Tooltip of the buttons of a read-only page. */
export const READ_ONLY_HINT = "Read-only: no operators are configured (web.operators)";

/** Creates a button that sends a command after confirmation. */
export const commandButton = (order: OperatorCommand, key: string, tone = ""): HTMLButtonElement =>
  createElement(
    "button",
    {
      type: "button",
      class: tone,
      "data-k": key,
      disabled: !commandState.isOpen,
      title: commandState.isOpen ? null : READ_ONLY_HINT,
      onclick: () => confirmCommand(order),
    },
    order.name,
  );

/** Opens a dialog to confirm a command, with its reason, and the token if none is stored. */
export function confirmCommand(order: OperatorCommand): void {
  const dialog = byId<HTMLDialogElement>("dialog");
  const problem = createElement("p", { class: "problem", role: "alert" });
  const reason = createElement("input", { id: "reason", maxlength: REASON_CHARS_MAX, autocomplete: "off" });
  const token = createElement("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    "aria-describedby": "token-help",
    spellcheck: "false",
  });
  const tokenField = createElement(
    "div",
    { class: "field", hidden: storedToken() !== null },
    createElement("label", { for: "token" }, "Operator token"),
    token,
    createElement(
      "small",
      { id: "token-help", class: "muted" },
      "Your own, as in web.operators. Kept for this tab alone.",
    ),
  );
  const send = createElement("button", { class: "primary" }, order.name);
  const form = createElement(
    "form",
    {},
    createElement("h2", { id: "dialog-title" }, order.name),
    createElement("p", {}, order.meaning),
    order.hasReason
      ? createElement("div", { class: "field" }, createElement("label", { for: "reason" }, "Reason (optional)"), reason)
      : null,
    tokenField,
    problem,
    createElement(
      "div",
      { class: "buttons" },
      createElement("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      send,
    ),
  );
  const refuse = (message: string, isToken: boolean) => {
    problem.textContent = message;
    if (!isToken) return;
    tokenField.hidden = false;
    token.focus();
    token.select();
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = storedToken() ?? token.value.trim();
    if (given === "") return refuse("An operator token is required.", true);
    send.disabled = true;
    const body = order.hasReason && reason.value.trim() !== "" ? { reason: reason.value.trim() } : null;
    const answer = await postCommand(order.path, given, body);
    send.disabled = false;
    if (answer.ok) {
      storeToken(given);
      dialog.close();
      toast(answer.value.message);
      commandState.onDone();
    } else if (answer.error.status === 401) {
      storeToken(null);
      refuse(`Refused: ${answer.error.message}.`, true);
    } else refuse(`Refused: ${answer.error.message}.`, false);
  });
  replaceChildren(dialog, [form]);
  if (!dialog.open) dialog.showModal();
  if (!tokenField.hidden && !order.hasReason) token.focus();
}

/** Returns whether a token is stored. */
export const hasToken = (): boolean => storedToken() !== null;

/** Forgets the token. */
export function forgetToken(): void {
  storeToken(null);
  toast("Token removed.");
}

let toastTimer = 0;

/** Shows a message for some seconds. */
export function toast(message: string): void {
  const box = byId("toast");
  box.textContent = message;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => box.replaceChildren(), TOAST_MS);
}

const storedToken = (): string | null => sessionStorage.getItem(TOKEN_KEY);

function storeToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(TOKEN_KEY);
  else sessionStorage.setItem(TOKEN_KEY, token);
  byId("forget").hidden = token === null;
}
