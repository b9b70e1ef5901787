import { byId } from "./dom.ts";
import { timeOfDay } from "./format.ts";
import { setCommandProblem } from "./panels/command-buttons.ts";

const NOT_CONNECTED_HINT = "Not connected to the daemon";
const READ_ONLY_HINT = "Read-only: no operators are configured (web.operators)";

interface ConnectionState {
  /** When the shown data was sent, or null if there is none yet. */
  readonly dataAt: string | null;
  readonly takesCommands: boolean;
  /** Why the last request for the status failed, or null if it was answered. */
  readonly problem: string | null;
  /** Whether events arrive. Otherwise the page polls. */
  readonly isLive: boolean;
  /** Names of the data that could not be read or shown. */
  readonly notShown: ReadonlySet<string>;
}

/**
 * Shows whether the daemon answers. While it does not, the data on the page is gray, its time is shown, and commands
 * are disabled. Also names data that the page can't show.
 */
export class Connection {
  #state: ConnectionState = { dataAt: null, takesCommands: false, problem: null, isLive: false, notShown: new Set() };

  /** Shows a change. Returns whether requests failed before it. */
  update(change: Partial<ConnectionState>): boolean {
    const wasLost = this.#state.problem !== null;
    this.#state = { ...this.#state, ...change };
    this.#show();
    return wasLost;
  }

  #show(): void {
    const { dataAt, takesCommands, problem, isLive, notShown } = this.#state;
    const isLost = problem !== null;
    const asOf = dataAt === null ? "" : `as of ${timeOfDay(dataAt)}`;
    if (isLost) showChip(["disconnected", asOf].filter(Boolean).join(", "), "bad");
    else if (notShown.size > 0) showChip("incomplete", "bad");
    else if (dataAt !== null) showChip(isLive ? "live" : "polling", isLive ? "good" : "wait");
    document.body.classList.toggle("is-disconnected", isLost);
    byId<HTMLButtonElement>("activity-older").disabled = isLost;
    document.title = isLost ? "(disconnected) proxywarden" : "proxywarden";
    const data = asOf === "" ? "No data" : `The page shows the state ${asOf}`;
    const text = isLost ? `${data}: ${problem}. Commands are disabled; the page reconnects automatically.` : "";
    showNote("disconnected", text);
    const names = [...notShown].sort().join(", ");
    const advice = "It keeps trying. If the daemon was upgraded, reload the page.";
    showNote("not-shown", isLost || names === "" ? "" : `The page can't show: ${names}. ${advice}`);
    byId("readonly").hidden = isLost || dataAt === null || takesCommands;
    setCommandProblem(isLost || dataAt === null ? NOT_CONNECTED_HINT : takesCommands ? null : READ_ONLY_HINT);
  }
}

function showNote(id: string, text: string): void {
  const note = byId(id);
  note.hidden = text === "";
  // A screen reader announces each change of the text.
  if (note.textContent !== text) note.textContent = text;
}

function showChip(text: string, tone: string): void {
  const chip = byId("connection");
  if (chip.textContent !== text) chip.textContent = text;
  chip.className = `chip connection tone-${tone}`;
}
