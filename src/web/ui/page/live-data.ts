import type { HistoryView } from "../../api/history.ts";
import type { PolicyView } from "../../api/remediation-views.ts";
import type { ActionView } from "../../api/row-views.ts";
import type { ActivityLine } from "./activity/activity-lines.ts";
import { type ApiResult, type Budget, type FleetDocument, getJson, type RowList, type Status } from "./api.ts";
import { Connection } from "./connection.ts";
import { connectStream } from "./event-stream.ts";
import { applyChange, type FleetModel, readFleet } from "./fleet/fleet.ts";

/** Polling interval of data without events. */
const STATUS_INTERVAL_MS = 3_000;
/** Interval of the server's samples. */
const HISTORY_INTERVAL_MS = 10_000;
/** Interval of polling the fleet and the activity without events, and of reading them again after a failure. */
const FLEET_INTERVAL_MS = 10_000;
/** A large fleet takes a while over a slow network. */
const FLEET_TIMEOUT_MS = 60_000;
/** Events within this time are handled together. */
const BATCH_DELAY_MS = 150;

/** Callbacks for data that arrives. */
interface DataListener {
  /** Called with a new fleet when nodes were added or removed. */
  fleet(fleet: FleetModel): void;
  /** Called with the slots of nodes whose status or mark changed. */
  nodesChanged(slots: readonly number[]): void;
  status(status: Status): void;
  budget(budget: Budget, now: number): void;
  policies(policies: readonly PolicyView[]): void;
  approvals(actions: readonly ActionView[], now: number): void;
  history(history: HistoryView): void;
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
  readonly #connection = new Connection();
  readonly #reconnect: () => void;
  #isStreaming = false;
  /** Names of the data whose last read failed or could not be shown. */
  readonly #notShown = new Set<string>();

  constructor(listener: DataListener) {
    this.#listener = listener;
    this.#reconnect = connectStream({
      hello: (revision) => {
        if (this.fleet?.revision !== revision) this.#refreshFleet();
      },
      fleet: (change) => {
        const slots = this.fleet && applyChange(this.fleet, change);
        if (slots === null) this.#refreshFleet();
        else listener.nodesChanged(slots);
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

  /** Reads status, limits, policies and approvals soon. */
  readonly refreshStatus = batched(async () => {
    const [status, budget, policies, waiting] = await Promise.all([
      getJson<Status>("status"),
      getJson<Budget>("budget"),
      getJson<RowList<PolicyView>>("policies"),
      getJson<RowList<ActionView>>("actions?state=awaiting&limit=1000"),
    ]);
    if (!status.ok) {
      this.#connection.update({ problem: status.error.message });
      return;
    }
    const { now: dataAt, accepts_commands: takesCommands } = status.value;
    if (this.#connection.update({ dataAt, takesCommands, problem: null })) {
      this.#reconnect();
      this.#refreshAll();
    }
    const now = Date.parse(dataAt);
    this.status = status.value;
    this.#show("limits", budget, (value) => {
      this.budget = value;
      this.#listener.budget(value, now);
    });
    this.#show("status", status, (value) => this.#listener.status(value));
    this.#show("policies", policies, ({ data }) => this.#listener.policies(data));
    this.#show("approvals", waiting, ({ data }) => this.#listener.approvals(data, now));
  });

  readonly #refreshFleet = batched(async () => {
    this.#show("fleet", await getJson<FleetDocument>("fleet", FLEET_TIMEOUT_MS), (value) => {
      this.fleet = readFleet(value);
      this.#listener.fleet(this.fleet);
    });
  });

  readonly #refreshHistory = batched(async () => {
    this.#show("charts", await getJson<HistoryView>("history"), (value) => this.#listener.history(value));
  });

  async #refreshActivity(): Promise<void> {
    try {
      this.#noteShown("activity", await this.#listener.rowsMissed());
    } catch (error) {
      this.#noteShown("activity", false);
      reportError(error);
    }
  }

  /** Shows a response, and notes whether there is one that the page can show. Never throws. */
  #show<T>(data: string, answer: ApiResult<T>, show: (value: T) => void): void {
    try {
      if (answer.ok) show(answer.value);
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
    for (const refresh of [this.#refreshFleet, this.refreshStatus, this.#refreshHistory]) refresh();
    void this.#refreshActivity();
  }
}

/** Creates a function that runs `work` soon, once for several calls, and again if called while it runs. */
function batched(work: () => Promise<void>): () => void {
  let state: "idle" | "due" | "running" | "again" = "idle";
  const start = () => {
    state = "due";
    setTimeout(async () => {
      state = "running";
      try {
        await work();
      } finally {
        const isWanted = (state as string) === "again";
        state = "idle";
        if (isWanted) start();
      }
    }, BATCH_DELAY_MS);
  };
  return () => {
    if (state === "idle") start();
    else if (state === "running") state = "again";
  };
}

const repeatWhileVisible = (ms: number, work: () => void) =>
  setInterval(() => {
    if (!document.hidden) work();
  }, ms);
