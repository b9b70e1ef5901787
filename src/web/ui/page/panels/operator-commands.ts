import { postCommand } from "../api.ts";
import { byId, createElement, replaceChildren } from "../dom.ts";

/** An operator command with its button and dialog. */
export interface OperatorCommand {
  /** Path below `api/v1/`. */
  readonly path: string;
  /** Label of the button. */
  readonly name: string;
  /** Its effect, in a sentence or two. */
  readonly meaning: string;
  readonly hasReason: boolean;
  /** Whether its effect can be limited to a duration. Defaults to false. */
  readonly hasDuration?: true;
}

/** The token is stored for this tab until it is closed. */
const TOKEN_KEY = "proxywarden.token";
const REASON_CHARS_MAX = 500;
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
export const commandButton = (command: OperatorCommand, key: string, tone = ""): HTMLButtonElement =>
  followProblem(
    createElement(
      "button",
      {
        type: "button",
        class: tone,
        "data-k": key,
        "data-command": command.meaning,
        onclick: () => confirmCommand(command),
      },
      command.name,
    ),
  );

/**
 * Opens a dialog to confirm a command. It asks for a reason and a duration if the command takes them, and for the token
 * if none is stored.
 */
export function confirmCommand(command: OperatorCommand): void {
  const dialog = byId<HTMLDialogElement>("dialog");
  const fields = createFields();
  const send = followProblem(createElement("button", { class: "primary", "data-command": "" }, command.name));
  const cancel = createElement("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const onsubmit = async (event: Event) => {
    event.preventDefault();
    const token = storedToken() ?? fields.token.value.trim();
    if (token === "") {
      showProblem(fields, "An operator token is required.", true);
      return;
    }
    send.ariaBusy = "true";
    followProblem(send);
    const message = await sendCommand(command, token, fields);
    send.ariaBusy = "false";
    followProblem(send);
    if (message === null) return;
    // Another command may have been opened in the meantime.
    if (form.isConnected) dialog.close();
    toast(message);
    commandState.onDone();
  };
  const form = createElement(
    "form",
    { onsubmit },
    createElement("h2", { id: "dialog-title" }, command.name),
    createElement("p", {}, command.meaning),
    command.hasReason ? fieldElement("Reason (optional)", fields.reason) : null,
    command.hasDuration ? fieldElement("For (optional, such as 2h)", fields.duration) : null,
    fields.tokenField,
    fields.problem,
    createElement("div", { class: "buttons" }, cancel, send),
  );
  replaceChildren(dialog, [form]);
  if (!dialog.open) dialog.showModal();
  if (!fields.tokenField.hidden && !command.hasReason) fields.token.focus();
}

type DialogFields = ReturnType<typeof createFields>;

function createFields() {
  const reason = createElement("input", { id: "reason", maxlength: REASON_CHARS_MAX, autocomplete: "off" });
  const duration = createElement("input", { id: "duration", autocomplete: "off", spellcheck: "false" });
  const token = createElement("input", {
    ...{ id: "token", type: "password", autocomplete: "off", spellcheck: "false" },
    "aria-describedby": "token-help",
  });
  const help = "Your own token, as in web.operators. It is kept for this tab only.";
  const tokenField = fieldElement("Operator token", token);
  tokenField.append(createElement("small", { id: "token-help", class: "muted" }, help));
  tokenField.hidden = hasToken();
  return { reason, duration, token, tokenField, problem: createElement("p", { class: "problem", role: "alert" }) };
}

const fieldElement = (label: string, input: HTMLInputElement): HTMLElement =>
  createElement("div", { class: "field" }, createElement("label", { for: input.id }, label), input);

/** Sends a command and returns the daemon's message, or null if it failed, which the dialog shows. */
async function sendCommand(command: OperatorCommand, token: string, fields: DialogFields): Promise<string | null> {
  const reason = fields.reason.value.trim();
  const duration = fields.duration.value.trim();
  const body = { ...(reason === "" ? {} : { reason }), ...(duration === "" ? {} : { for: duration }) };
  const answer = await postCommand(command.path, token, Object.keys(body).length === 0 ? null : body);
  if (answer.ok) {
    storeToken(token);
    return answer.value.message;
  }
  const isWrongToken = answer.error.status === 401;
  if (isWrongToken) storeToken(null);
  const problem =
    answer.error.status === 0
      ? "No response: the command may have been executed. Check before you send it again."
      : `Failed: ${answer.error.message}.`;
  showProblem(fields, problem, isWrongToken);
  return null;
}

function showProblem({ problem, tokenField, token }: DialogFields, message: string, asksForToken: boolean): void {
  problem.textContent = message;
  if (!asksForToken) return;
  tokenField.hidden = false;
  token.focus();
  token.select();
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
function toast(message: string): void {
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
