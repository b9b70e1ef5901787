import type { SharedState } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";
import { createSequence } from "../platform/sequence.ts";
import type { ConfigResources } from "./config-resources.ts";
import { executeForwardedCommands } from "./forwarded-commands.ts";
import { hasSameCollection, hasSameLimits, type Leader, startCollection, startLeader } from "./leader.ts";
import { Leadership } from "./leadership.ts";
import { type LeadershipTerm, openSharedTerm } from "./leadership-term.ts";
import type { Runtime } from "./runtime.ts";
import { SHUTDOWN_BUDGET } from "./shutdown.ts";
import { Standby } from "./standby.ts";

/**
 * Runs the active configuration, as a leader or as a standby, and replaces it at a reload and when leadership changes.
 *
 * - A change of role keeps the web server, the metrics with their counts, the status page, the configuration and its
 *   resources.
 * - Each term begins as after a restart (see {@link LeadershipTerm}), with an empty inventory.
 *
 * A daemon that shares its state with no other always leads.
 */
export class RoleSwitch {
  readonly #runtime: Runtime;
  #active!: Leader | Standby;
  #leadership: Leadership | null = null;
  /** Changes must not overlap. */
  readonly #inSequence = createSequence();
  #isStopping = false;
  #stopForwardedCommands: () => Promise<void> = async () => {};

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  get active(): Leader | Standby {
    return this.#active;
  }

  /** What acquires and renews the lease of this daemon, or null if it shares its state with no other. */
  get leadership(): Leadership | null {
    return this.#leadership;
  }

  /** Starts to lead with a new term. */
  lead(resources: ConfigResources, term: LeadershipTerm): void {
    const collection = startCollection(resources, null, this.#runtime, term);
    this.#active = startLeader(resources, collection, [], this.#runtime, term);
  }

  /** Stands by, and leads whenever this daemon is elected. */
  async standBy(resources: ConfigResources, shared: SharedState): Promise<void> {
    this.#leadership = new Leadership({
      ...this.#runtime,
      lease: shared.lease,
      leaseMs: resources.config.state.postgres!.lease,
      onElected: () => this.#inSequence(() => this.#elect(shared)),
      onLeadershipLost: () => this.#inSequence(() => this.#loseLeadership()),
    });
    await this.#startStandby(resources);
    this.#leadership.start();
  }

  /** Whether this daemon leads now. */
  isLeading(): boolean {
    const { shared } = this.#runtime;
    return this.#active.isLeading && (shared === null || shared.lease.isLeader());
  }

  /** Stops what the active configuration runs, and restarts it with new resources. */
  activate(resources: ConfigResources): Promise<void> {
    return this.#inSequence(async () => {
      const old = this.#active;
      this.#runtime.log.setLevel(resources.config.log.level);
      if (old.isLeading) return this.#replaceLeader(old, resources);
      await old.stop("all");
      await this.#startStandby(resources);
    });
  }

  /** Stops the active configuration, which does not change afterwards. The shutdown began at `startedAt`. */
  async stop(startedAt: MonotonicMs): Promise<void> {
    this.#isStopping = true;
    await this.#inSequence(async () => {
      const active = this.#active;
      if (active.isLeading) {
        const elapsed = this.#runtime.clock.monotonic() - startedAt;
        const postMs = Math.max(0, SHUTDOWN_BUDGET.postMs - elapsed);
        // At the same time, because a database that does not answer delays the last command.
        await Promise.all([active.stop("all", postMs), this.#stopForwardedCommands()]);
      } else await active.stop("all");
    });
  }

  /**
   * Writes what is still to be written and releases the lease, so that another daemon can lead immediately. Call it
   * after {@link stop}.
   */
  async handOver(): Promise<void> {
    const { shared } = this.#runtime;
    const term = this.#active.isLeading ? this.#active.term : null;
    await Promise.all([term?.rateLimiter.flush(), term?.remediationState.flush()]);
    if (shared === null) return;
    await this.#leadership?.stop();
    // Without a term, the lease may have been acquired while this daemon was stopping.
    await (term === null ? shared.lease.release() : term.store.close());
  }

  /** Closes the state. Call it after {@link handOver}. */
  async close(): Promise<void> {
    const { shared } = this.#runtime;
    if (shared !== null) await shared.close();
    else if (this.#active.isLeading) await this.#active.term.store.close();
  }

  async #elect(shared: SharedState): Promise<void> {
    const standby = this.#active;
    if (this.#isStopping || standby.isLeading) return;
    const { resources } = standby;
    const term = await openSharedTerm(this.#runtime, resources.config, shared);
    if (this.#isStopping) return;
    await standby.stop("standing by");
    this.lead(resources, term);
    this.#stopForwardedCommands = executeForwardedCommands({
      ...this.#runtime,
      forwardedCommands: shared.forwardedCommands,
      isLeader: () => this.isLeading(),
      execute: (command) => this.#active.execute(command),
    });
  }

  /** Ends the term. What was not written is discarded, and the new leader settles it by observation. */
  async #loseLeadership(): Promise<void> {
    const leader = this.#active;
    if (this.#isStopping || !leader.isLeading) return;
    await Promise.all([leader.stop("leading"), this.#stopForwardedCommands()]);
    const { exposition, metrics } = this.#runtime;
    await exposition.refresh(null);
    metrics.clearLeaderGauges();
    // After a reload that kept the collectors, the open connections are those of their configuration.
    const { transport, secret } = leader.collection.resources;
    await this.#startStandby({ ...leader.resources, transport, secret });
  }

  async #replaceLeader(old: Leader, resources: ConfigResources): Promise<void> {
    const { config, settings } = resources;
    const { term } = old;
    const keepsCollectors = hasSameCollection(old.collection.resources, resources);
    await old.stop(keepsCollectors ? "remediation" : "all");
    if (keepsCollectors) await resources.transport.close();
    if (!hasSameLimits(old.resources, resources)) term.rateLimiter.setLimits(settings.limits, settings.monthStartsOn);
    const isSameService = config.service.base_url === old.resources.config.service.base_url;
    const knownService = isSameService ? old.collection.knownService : null;
    const { exposition, metrics } = this.#runtime;
    if (!isSameService) {
      void exposition.refresh(null);
      metrics.clearLeaderGauges();
    }
    const collection = keepsCollectors ? old.collection : startCollection(resources, knownService, this.#runtime, term);
    this.#active = startLeader(resources, collection, old.activeNotifications(), this.#runtime, term);
    // If publishing failed, the leader has logged it, and /metrics has no metrics of the network.
    await exposition.published().catch(() => undefined);
  }

  async #startStandby(resources: ConfigResources): Promise<void> {
    const leader = () => {
      const { holder = "which is not known yet", url = null } = this.#leadership?.leader() ?? {};
      return url === null ? holder : `${holder} (${url})`;
    };
    const standby = new Standby(resources, this.#runtime, leader);
    this.#active = standby;
    await standby.start();
  }
}
