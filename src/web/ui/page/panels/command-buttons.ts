import { postCommand } from "../api.ts";
import { byId, createButton, replaceChildren } from "../dom.ts";
import { withLocalTimes } from "../format.ts";
import { readStored, store } from "../storage.ts";

/** An operator command with its button and dialog. */
export interface OperatorCommand {
  /** Path below `api/v1/`. */
  readonly path: string;
  /** Label of the button. */
  readonly name: string;
  /** Its effect, in a sentence or two. */
  readonly meaning: string;
  /** Whether it takes an optional reason. Defaults to false. */
  readonly hasReason?: true;
  /** Whether its effect can be limited to a duration. Defaults to false. */
  readonly hasDuration?: true;
}

/** The session storage keeps the token until the tab is closed. */
const TOKEN_KEY = "proxywarden.token";
const TOAST_MS = 8_000;

/** `problem` says why no command can be sent now, or is null if commands can be sent. */
const commandState: { problem: string | null; onDone: () => void } = { problem: "", onDone: () => {} };

/** Enables all command buttons, or disables them with a reason. */
export function setCommandProblem(problem: string | null): void {
  if (problem === commandState.problem) return;
  commandState.problem = problem;
  for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-command]")) followProblem(button);
}

/** Returns why no command can be sent now, or null if commands can be sent. */
export const commandProblem = (): string | null => commandState.problem;

/** Enables a command button unless there is a problem or it is busy. Its `data-command` is its tooltip. */
function followProblem(button: HTMLButtonElement): HTMLButtonElement {
  button.disabled = commandState.problem !== null || button.ariaBusy === "true";
  button.title = commandState.problem ?? button.dataset.command!;
  return button;
}

/** Sets what runs after each command that succeeded. */
export function onCommandDone(then: () => void): void {
  commandState.onDone = then;
}

/** Creates a button that sends a command after confirmation. */
export function commandButton(command: OperatorCommand, key: string, tone = ""): HTMLButtonElement {
  const attributes = { class: tone, "data-command": command.meaning };
  return followProblem(createButton(command.name, key, () => confirmCommand(command), attributes));
}

/**
 * Opens a dialog to confirm a command. It asks for a reason and a duration if the command takes them, and for the token
 * if none is stored.
 */
export function confirmCommand(command: OperatorCommand): void {
  const dialog = byId<HTMLDialogElement>("dialog");
  const { content } = byId<HTMLTemplateElement>("command-form");
  replaceChildren(dialog, [content.cloneNode(true)]);
  const form = dialog.querySelector("form")!;
  form.querySelector("h2")!.textContent = command.name;
  form.querySelector("p")!.textContent = command.meaning;
  fieldOf(form, "reason").hidden = !command.hasReason;
  fieldOf(form, "for").hidden = !command.hasDuration;
  fieldOf(form, "token").hidden = hasToken();
  const send = form.querySelector<HTMLButtonElement>(".primary")!;
  send.textContent = command.name;
  followProblem(send);
  form.querySelector(".cancel")!.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.ariaBusy = "true";
    followProblem(send);
    const message = await sendCommand(command, form);
    send.ariaBusy = "false";
    followProblem(send);
    if (message === null) return;
    // Another command may have been opened in the meantime.
    if (form.isConnected) dialog.close();
    toast(message);
    commandState.onDone();
  });
  dialog.showModal();
}

/** Returns the field of a command's form with a parameter. */
const fieldOf = (form: HTMLFormElement, name: "reason" | "for" | "token"): HTMLElement =>
  form.querySelector<HTMLInputElement>(`[name=${name}]`)!.closest<HTMLElement>(".field")!;

/** Sends a command and returns the daemon's message, or null if it failed. The failure is shown. */
async function sendCommand({ path, name }: OperatorCommand, form: HTMLFormElement): Promise<string | null> {
  const given = [...new FormData(form)].map(([field, value]) => [field, String(value).trim()] as const);
  const { token: typed, ...body } = Object.fromEntries(given.filter(([, value]) => value !== ""));
  const token = typed ?? storedToken();
  if (token == null) return showProblem(form, "An operator token is required.", true);
  const answer = await postCommand(path, token, body);
  const { status, message } = answer.ok ? { status: 200, message: answer.value.message } : answer.error;
  // The daemon checks the token first: after a conflict, too, it was valid.
  if (status === 200 || status === 202 || status === 409) storeToken(token);
  if (status === 200) return message;
  if (status === 202) return showProblem(form, `${name} not confirmed: ${message}.`, false);
  if (status === 0) {
    const advice = "The command may have been executed. Check before you send it again.";
    return showProblem(form, `${name} not confirmed: ${message}. ${advice}`, false);
  }
  if (status === 401) storeToken(null);
  // After too many wrong tokens, the response to another one is 429.
  return showProblem(form, `${name} failed: ${message}.`, status === 401 || status === 429);
}

/** Shows what went wrong with a command, and asks for the token if that may help. Returns null. */
function showProblem(form: HTMLFormElement, message: string, asksForToken: boolean): null {
  // The dialog may have been closed, or show another command.
  if (!form.isConnected || !byId<HTMLDialogElement>("dialog").open) toast(message);
  form.querySelector(".problem")!.textContent = message;
  if (!asksForToken) return null;
  fieldOf(form, "token").hidden = false;
  const input = form.querySelector<HTMLInputElement>("[name=token]")!;
  input.focus();
  input.select();
  return null;
}

/** Returns whether a token is stored. */
export const hasToken = (): boolean => storedToken() !== null;

/** Forgets the token. */
export function forgetToken(): void {
  storeToken(null);
  toast("Token forgotten.");
}

let toastTimer = 0;

/** Shows a message for some seconds. */
function toast(message: string): void {
  const box = byId("toast");
  box.textContent = withLocalTimes(message);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => box.replaceChildren(), TOAST_MS);
}

const storedToken = (): string | null => readStored("sessionStorage", TOKEN_KEY);

function storeToken(token: string | null): void {
  store("sessionStorage", TOKEN_KEY, token);
  byId("forget").hidden = !hasToken();
}
