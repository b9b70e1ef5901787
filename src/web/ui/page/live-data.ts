import type { FleetDocument, FleetGridChange } from "../../api/fleet-columns.ts";
import type { HistoryView } from "../../api/history.ts";
import type { PolicyView } from "../../api/remediation-views.ts";
import type { ActionView } from "../../api/row-views.ts";
import type { Rows } from "../../api/unknown-names.ts";
import type { ActivityLine } from "./activity/activity-lines.ts";
import { type ApiResult, type Budget, getJson, type Status } from "./api.ts";
import { Connection } from "./connection.ts";
import { connectStream } from "./event-stream.ts";
import { applyChange, type FleetModel, readFleet } from "./fleet/fleet.ts";

/** Polling interval of data without events. */
const STATUS_INTERVAL_MS = 3_000;
/** Interval of the server's samples. */
const HISTORY_INTERVAL_MS = 10_000;
/** Polling interval of the fleet and the activity while the event stream is down, or after they could not be read. */
const FLEET_INTERVAL_MS = 10_000;
/** A large fleet takes a while over a slow network. */
const FLEET_TIMEOUT_MS = 60_000;
/** Events within this time are handled together. */
const BATCH_DELAY_MS = 150;

/** Callbacks for data that arrives. */
interface DataListener {
  /** Called with the fleet whenever it was read again. */
  fleet(fleet: FleetModel): void;
  /** Called with the indexes of nodes whose status or mark changed. */
  nodesChanged(indexes: readonly number[]): void;
  status(status: Status): void;
  /** Called when the status could not be read. */
  statusFailed(): void;
  budget(budget: Budget, now: number): void;
  policies(policies: readonly PolicyView[]): void;
  approvals(actions: readonly ActionView[], now: number): void;
  history(history: HistoryView): Promise<void>;
  /** Called for each decision, action and operator command. */
  line(line: ActivityLine): void;
  /** Called when decisions, actions or operator commands may have been missed. Returns whether they were read. */
  rowsMissed(): Promise<boolean>;
}

/** Keeps the data of the page up to date with events and polling while the page is visible. */
export class LiveData {
  /** Null if not read yet. The same applies to the data below. */
  fleet: FleetModel | null = null;
  status: Status | null = null;
  budget: Budget | null = null;
  readonly #listener: DataListener;
  #isReadingFleet = false;
  /** The last revision that an event named while the fleet was being read, or null if none did. */
  #namedRevision: number | null = null;
  /** Changes that arrived while the fleet was being read. The response may be older. */
  #arrived: FleetGridChange[] = [];
  readonly #connection = new Connection();
  readonly #reconnect: () => void;
  #isStreaming = false;
  /** Names of the data that could not be read or shown the last time. */
  readonly #notShown = new Set<string>();

  constructor(listener: DataListener) {
    this.#listener = listener;
    this.#reconnect = connectStream({
      hello: (revision, isResumed) => {
        this.#follow(revision);
        // Rows may have been written since the page was loaded, for example in a hidden tab.
        if (!isResumed) void this.#refreshActivity();
      },
      fleet: (change) => {
        if (this.#isReadingFleet) this.#arrived.push(change);
        const indexes = this.fleet && applyChange(this.fleet, change);
        if (indexes === null) this.#follow(change.revision);
        else listener.nodesChanged(indexes);
      },
      line: (line) => {
        listener.line(line);
        this.refreshStatus();
      },
      missed: () => this.#refreshAll(),
      state: (isLive) => {
        this.#isStreaming = isLive;
        this.#connection.update({ isLive });
        if (!isLive) this.refreshStatus();
      },
    });
    repeatWhileVisible(STATUS_INTERVAL_MS, this.refreshStatus);
    repeatWhileVisible(HISTORY_INTERVAL_MS, this.#refreshHistory);
    repeatWhileVisible(FLEET_INTERVAL_MS, () => {
      if (!this.#isStreaming || this.#notShown.has("fleet")) this.#refreshFleet();
      if (!this.#isStreaming || this.#notShown.has("activity")) void this.#refreshActivity();
    });
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) for (const refresh of [this.refreshStatus, this.#refreshHistory]) refresh();
    });
    this.#refreshAll();
  }

  /** The fleet, or null if it is not known yet: it is empty, and no walk of the node list has completed. */
  get knownFleet(): FleetModel | null {
    return this.fleet?.cells.length === 0 && !this.status?.nodes_complete ? null : this.fleet;
  }

  /** Reads status, budget, policies and approvals soon. */
  readonly refreshStatus = batched(async () => {
    const [status, budget, policies, waiting] = await Promise.all([
      getJson<Status>("status"),
      getJson<Budget>("budget"),
      getJson<Rows<PolicyView>>("policies"),
      getJson<Rows<ActionView>>("actions?state=awaiting&limit=1000"),
    ]);
    if (!status.ok) {
      this.#connection.update({ problem: status.error.message });
      this.#listener.statusFailed();
      return;
    }
    const { now: dataAt, accepts_commands: takesCommands } = status.value;
    if (this.#connection.update({ dataAt, takesCommands, problem: null })) {
      this.#reconnect();
      this.#refreshAll();
    }
    const now = Date.parse(dataAt);
    this.status = status.value;
    void this.#show("budget", budget, (value) => {
      this.budget = value;
      this.#listener.budget(value, now);
    });
    void this.#show("status", status, (value) => this.#listener.status(value));
    void this.#show("policies", policies, ({ data }) => this.#listener.policies(data));
    void this.#show("approvals", waiting, ({ data }) => this.#listener.approvals(data, now));
  });

  readonly #refreshFleet = batched(async () => {
    this.#isReadingFleet = true;
    this.#namedRevision = null;
    this.#arrived = [];
    const answer = await getJson<FleetDocument>("fleet", FLEET_TIMEOUT_MS);
    this.#isReadingFleet = false;
    await this.#show("fleet", answer, (value) => {
      this.fleet = readFleet(value);
      for (const change of this.#arrived) applyChange(this.fleet, change);
      this.#listener.fleet(this.fleet);
      if (this.#namedRevision !== null) this.#follow(this.#namedRevision);
    });
  });

  /** Reads the fleet again unless it has this revision. While it is being read, the check waits for the response. */
  #follow(revision: number): void {
    if (this.#isReadingFleet) this.#namedRevision = revision;
    else if (this.fleet?.revision !== revision) void this.#refreshFleet();
  }

  readonly #refreshHistory = batched(async () => {
    await this.#show("charts", await getJson<HistoryView>("history"), (value) => this.#listener.history(value));
  });

  async #refreshActivity(): Promise<void> {
    try {
      this.#noteShown("activity", await this.#listener.rowsMissed());
    } catch (error) {
      this.#noteShown("activity", false);
      reportError(error);
    }
  }

  /** Shows a response, and records whether there was one that the page can show. Never rejects. */
  async #show<T>(data: string, answer: ApiResult<T>, show: (value: T) => void | Promise<void>): Promise<void> {
    try {
      if (answer.ok) await show(answer.value);
      this.#noteShown(data, answer.ok);
    } catch (error) {
      // The daemon may have been upgraded since the page was loaded.
      this.#noteShown(data, false);
      reportError(error);
    }
  }

  #noteShown(data: string, isShown: boolean): void {
    if (isShown) this.#notShown.delete(data);
    else this.#notShown.add(data);
    this.#connection.update({ notShown: this.#notShown });
  }

  #refreshAll(): void {
    // The charts are less urgent than the fleet, and drawing them takes a while.
    void this.#refreshFleet().then(this.#refreshHistory);
    void this.refreshStatus();
    void this.#refreshActivity();
  }
}

/**
 * Creates a function that runs `work` soon, once for several calls, and again if called while it runs. The first run
 * starts at once. The promise resolves after the run.
 */
function batched(work: () => Promise<void>): () => Promise<void> {
  let delayMs = 0;
  let last: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  const run = async () => {
    await last?.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    delayMs = BATCH_DELAY_MS;
    last = next;
    next = null;
    await work();
  };
  return () => {
    next ??= run();
    return next;
  };
}

const repeatWhileVisible = (ms: number, work: () => void) =>
  setInterval(() => {
    if (!document.hidden) work();
  }, ms);
