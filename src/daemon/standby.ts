import { byName } from "../base/by-name.ts";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { errorMessage } from "../base/result.ts";
import { NOT_RUN } from "../collectors/collector-health.ts";
import type { SharedState } from "../model/ports.ts";
import type { JournalContents } from "../model/remediation/journal.ts";
import type { CommandReply, OperatorCommand } from "../model/remediation/operator-command.ts";
import { COLLECTORS } from "../model/snapshot.ts";
import { FailureState } from "../platform/log.ts";
import { createLedger, type Ledger } from "../rate-limit/ledger.ts";
import { type BillingMonth, billingMonthOf } from "../rate-limit/monthly-budget.ts";
import { FleetHealth } from "../remediation/evaluation/fleet-health.ts";
import { ObservedFleet } from "../remediation/observed-fleet.ts";
import { PolicySet } from "../remediation/policy-set.ts";
import { CLOCK_FACT, JournalClock } from "../remediation/state/journal-clock.ts";
import {
  openRemediationState,
  RemediationState,
  type RemediationStateDeps,
} from "../remediation/state/journaled-state.ts";
import { createStatusView } from "../remediation/status/status-view.ts";
import type { RemediationView } from "../remediation/status/views.ts";
import { type ConfigResources, closeResources } from "./config-resources.ts";
import { forwardCommand } from "./forwarded-commands.ts";
import type { CollectedStatus } from "./leader.ts";
import { readMonthCalls } from "./leadership-term.ts";
import type { Runtime } from "./runtime.ts";

/** How often to check whether the journal has changed. */
const REFRESH_INTERVAL_MS: DurationMs = 2 * SECOND_MS;
/** A large journal is read less often: after a read, the next one waits for this many times its duration. */
const REFRESH_WAIT_FACTOR = 10;
/**
 * Number of rows of each kind that are read at once. If more change between two reads, the rest is missing from the
 * event log, but not from the lists.
 */
const ROWS_READ = 100;

const EMPTY_JOURNAL: JournalContents = {
  timers: [],
  episodes: [],
  actions: [],
  holds: [],
  facts: new Map(),
  lastNumber: 0,
};

/**
 * What a daemon runs while it stands by. It neither polls nor acts. It shows what the leader has journaled, and
 * forwards operator commands to the leader.
 */
export class Standby {
  readonly isLeading = false;
  readonly resources: ConfigResources;
  readonly #runtime: Runtime;
  readonly #shared: SharedState;
  readonly #leader: () => string;
  readonly #ledger: Ledger;
  #month: BillingMonth;
  readonly #stop = new AbortController();
  /** Replaced when the journal has changed. */
  #journaled: RemediationView;
  #clockFact: string | undefined;
  /** The rows that were read last, as JSON, or null if none were read yet. */
  #knownRows: ReadonlySet<string> | null = null;
  /** Why the journal could not be read last time, or null if it was read. */
  #problem: string | null = "the journal has not been read yet";
  readonly #reads = new FailureState();

  /** `leader` returns what messages call the leader. */
  constructor(resources: ConfigResources, runtime: Runtime, leader: () => string) {
    const { clock, log } = runtime;
    this.resources = resources;
    this.#runtime = runtime;
    this.#shared = runtime.shared!;
    this.#leader = leader;
    this.#ledger = createLedger(resources.settings.limits, clock.monotonic());
    this.#month = billingMonthOf(clock.now(), resources.settings.monthStartsOn);
    const unreadClock = new JournalClock(EMPTY_JOURNAL.facts, clock, log);
    const unread = new RemediationState(this.#stateDeps(), unreadClock, EMPTY_JOURNAL);
    this.#journaled = this.#viewOf(unread);
  }

  /** What the journal shows, as it was last read. */
  get view(): RemediationView {
    const journaled = this.#journaled;
    return { ...journaled, status: () => ({ ...journaled.status(), journal: this.#problem }) };
  }

  /**
   * Reads the journal, and reads it again whenever it has changed, until {@link stop}. Resolves after the first
   * attempt.
   */
  async start(): Promise<void> {
    await this.#refresh();
    void this.#keepFresh();
  }

  /** Forwards a command to the leader, and returns its reply. */
  execute(command: OperatorCommand): Promise<CommandReply> {
    return forwardCommand(command, this.#leader, { ...this.#runtime, ...this.#shared });
  }

  collected(): CollectedStatus {
    return {
      snapshot: null,
      plan: byName(COLLECTORS, () => null),
      collectors: byName(COLLECTORS, () => NOT_RUN),
      ledger: this.#ledger,
      month: this.#month,
      clockSkewMs: null,
    };
  }

  /** Stops reading the journal, without waiting for a read under way. With `all`, the resources are closed too. */
  async stop(scope: "standing by" | "all"): Promise<void> {
    this.#stop.abort();
    if (scope === "all") await closeResources(this.resources);
  }

  async #keepFresh(): Promise<void> {
    const { clock } = this.#runtime;
    const { signal } = this.#stop;
    let waitMs = REFRESH_INTERVAL_MS;
    while (!signal.aborted) {
      await clock.sleep(waitMs, signal);
      if (signal.aborted) return;
      const startedAt = clock.monotonic();
      await this.#refresh();
      // A failed read took long because it waited for the database.
      const tookMs = this.#problem === null ? clock.monotonic() - startedAt : 0;
      waitMs = Math.max(REFRESH_INTERVAL_MS, REFRESH_WAIT_FACTOR * tookMs);
    }
  }

  /** Reads the journal if its clock shows that it was written. Never rejects. */
  async #refresh(): Promise<void> {
    const { clock, log } = this.#runtime;
    try {
      const facts = await this.#shared.journal.facts();
      const clockFact = facts.get(CLOCK_FACT);
      // A new journal has no clock until its leader knows the time.
      if (clockFact === undefined || clockFact !== this.#clockFact || this.#problem !== null) {
        this.#journaled = this.#viewOf(await openRemediationState(this.#stateDeps()));
        await this.#recordNewRows();
        this.#clockFact = clockFact;
      }
      const { monthStartsOn } = this.resources.settings;
      const callsSince = (day: string) => this.#shared.callsSince(day);
      const { month, calls } = await readMonthCalls(facts, callsSince, clock.now(), monthStartsOn);
      this.#month = month;
      this.#ledger.monthUsed = calls;
      this.#problem = null;
      this.#reads.succeeded(log, {}, "the journal can be read again");
    } catch (error) {
      this.#problem = `the journal can't be read: ${errorMessage(error)}`;
      this.#reads.failed(log, { err: error }, "the journal can't be read; what this standby shows is out of date");
    }
  }

  /**
   * Records new and changed decisions, actions and operator commands in the event log, for the status page. The first
   * call records none, because a page that opens reads the lists.
   */
  async #recordNewRows(): Promise<void> {
    const { journal } = this.#shared;
    const query = { limit: ROWS_READ };
    const [decisions, actions, commands] = await Promise.all([
      journal.decisions(query),
      journal.actions(query),
      journal.operatorCommands(query),
    ]);
    const rows = [
      ...decisions.toReversed().map((row) => ({ kind: "decision", row }) as const),
      ...actions.toReversed().map((row) => ({ kind: "action", row }) as const),
      ...commands.toReversed().map((row) => ({ kind: "command", row }) as const),
    ];
    const texts = rows.map((row) => JSON.stringify(row));
    // A daemon that has been elected in the meantime records the rows itself.
    if (this.#stop.signal.aborted) return;
    const known = this.#knownRows;
    if (known !== null) this.#runtime.eventLog.record(rows.filter((_, index) => !known.has(texts[index]!)));
    this.#knownRows = new Set(texts);
  }

  #stateDeps(): RemediationStateDeps {
    const commit = () => Promise.reject(new Error("this daemon stands by, and writes nothing"));
    return { ...this.#runtime, journal: { ...this.#shared.journal, commit, prune: commit }, lostReason: null };
  }

  /** Returns the view of what the leader has journaled. It knows only what was journaled about nodes. */
  #viewOf(remediationState: RemediationState): RemediationView {
    const config = { ...this.resources.config, policies: this.resources.policies };
    const policies = new PolicySet(config, remediationState.records);
    const observed = new ObservedFleet({ serviceTime: () => null });
    const { journal } = this.#shared;
    const context = { clock: this.#runtime.clock, config, policies, observed, remediationState, journal };
    const unobserved = () => `this daemon stands by; only the leader, ${this.#leader()}, observes the fleet`;
    return createStatusView({ context, fleetHealth: new FleetHealth(context), leader: null, unobserved });
  }
}
