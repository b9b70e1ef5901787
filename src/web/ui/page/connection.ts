import { byId } from "./dom.ts";
import { timeOfDay } from "./format.ts";
import { setCommandProblem } from "./panels/operator-commands.ts";

const NOT_CONNECTED_HINT = "Not connected to the daemon";
const READ_ONLY_HINT = "Read-only: no operators are configured (web.operators)";

/**
 * Shows whether the daemon answers. While it does not, everything on the page is gray, the time of the data is shown,
 * and commands are disabled. Also names data that the page can't show.
 */
export class Connection {
  /** When the shown data was sent, or null if there is none yet. */
  #dataAt: string | null = null;
  #takesCommands = false;
  /** Why the last request failed, or null if it was answered. */
  #problem: string | null = null;
  /** Whether events arrive. Otherwise the page polls. */
  #isLive = false;
  /** Names of the data that could not be read or shown. */
  #notShown: ReadonlySet<string> = new Set();

  /** Notes a response that was sent at `now`, and returns whether earlier ones failed. */
  noteAnswer(now: string, takesCommands: boolean): boolean {
    const isBack = this.#problem !== null;
    this.#dataAt = now;
    this.#takesCommands = takesCommands;
    this.#problem = null;
    this.#show();
    return isBack;
  }

  noteFailure(problem: string): void {
    this.#problem = problem;
    this.#show();
  }

  noteEvents(isLive: boolean): void {
    this.#isLive = isLive;
    this.#show();
  }

  /** Names the data that could not be read or shown. */
  noteNotShown(notShown: ReadonlySet<string>): void {
    this.#notShown = notShown;
    this.#show();
  }

  #show(): void {
    const isLost = this.#problem !== null;
    const asOf = this.#dataAt === null ? "" : `as of ${timeOfDay(this.#dataAt)}`;
    if (isLost) showChip(["disconnected", asOf].filter(Boolean).join(", "), "bad");
    else if (this.#notShown.size > 0) showChip("incomplete", "bad");
    else if (this.#dataAt !== null) showChip(this.#isLive ? "live" : "polling", this.#isLive ? "good" : "wait");
    document.body.classList.toggle("is-disconnected", isLost);
    byId<HTMLButtonElement>("activity-older").disabled = isLost;
    document.title = isLost ? "(disconnected) proxywarden" : "proxywarden";
    const data = asOf === "" ? "" : ` The page shows the state ${asOf}.`;
    const text = isLost
      ? `No data: ${this.#problem}.${data} Commands are disabled; the page reconnects automatically.`
      : "";
    showNote("disconnected", text);
    const notShown = [...this.#notShown].sort().join(", ");
    const advice = "It tries again. If the daemon was upgraded, reload the page.";
    showNote("not-shown", isLost || notShown === "" ? "" : `The page can't show: ${notShown}. ${advice}`);
    byId("readonly").hidden = isLost || this.#dataAt === null || this.#takesCommands;
    setCommandProblem(
      isLost || this.#dataAt === null ? NOT_CONNECTED_HINT : this.#takesCommands ? null : READ_ONLY_HINT,
    );
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
