import { isDeepStrictEqual } from "node:util";
import { createApiClient } from "../api-client/client.ts";
import { userAgentOf } from "../api-client/integration-client.ts";
import type { RateLimiter } from "../api-client/rate-limiter.ts";
import { ServiceClock } from "../api-client/service-clock.ts";
import { byName } from "../base/by-name.ts";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { type CollectedState, createCollectedState } from "../collectors/collected-state.ts";
import { startCollectorManager } from "../collectors/collector-manager.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, Lease, Transport } from "../model/ports.ts";
import type { Notification, Receiver } from "../model/remediation/notification.ts";
import { COLLECTORS } from "../model/snapshot.ts";
import { Notifier } from "../notify/notifier.ts";
import type { Category } from "../rate-limit/limits.ts";
import { RemediationController } from "../remediation/controller.ts";
import { forgetOtherService } from "../remediation/service-binding.ts";
import type { StatusSnapshot } from "../web/api/status-views.ts";
import type { ConfigResources } from "./config-resources.ts";
import type { LeadershipTerm } from "./leadership-term.ts";
import type { Runtime } from "./runtime.ts";
import { SHUTDOWN_BUDGET } from "./shutdown.ts";

/** What is known about a service. */
interface KnownService {
  readonly collected: CollectedState;
  readonly serviceClock: ServiceClock;
}

/** The running collectors, and the client that they share with remediation. A reload may keep it. */
type Collection = ReturnType<typeof startCollection>;

/** Starts the collectors. `knownService` is what is known about the same service, or null. */
export function startCollection(
  resources: ConfigResources,
  knownService: KnownService | null,
  runtime: Runtime,
  { rateLimiter, remediationState }: LeadershipTerm,
) {
  const { shared } = runtime;
  const { config, settings, secret } = resources;
  const transport = shared === null ? resources.transport : transportOfLeader(resources.transport, shared.lease);
  forgetOtherService(remediationState, resources.policies, config.service.base_url);
  const collected = knownService?.collected ?? createCollectedState(settings, remediationState.facts, runtime);
  const serviceClock = knownService?.serviceClock ?? new ServiceClock();
  const ofService = { timeoutMs: config.service.timeout, agent: userAgentOf(runtime.version) };
  const client = createApiClient({ ...runtime, ...ofService, rateLimiter, secret, transport, serviceClock });
  collected.inventory.declareScale(settings.usageScale);
  const collectorManager = startCollectorManager({ ...runtime, settings, collected, client, rateLimiter });
  return { resources, client, collectorManager, knownService: { collected, serviceClock } };
}

/**
 * Returns a transport that sends a request only while this daemon leads. A request may wait for its connection after
 * its caller's last check, so leadership is checked again right before it is written.
 */
const transportOfLeader = (transport: Transport, lease: Lease): Transport => ({
  ...transport,
  request: (request, signal) => transport.request({ ...request, mayBeSent: () => lease.isLeader() }, signal),
});

/** How often to check whether this daemon leads again. */
const LEADERSHIP_CHECK_MS: DurationMs = SECOND_MS;

/**
 * Returns a receiver that waits until this daemon leads before it sends, or until it is aborted. Another daemon may
 * lead in the meantime, and know that a condition has ended.
 */
const receiverOfLeader = (receiver: Receiver, lease: Lease, clock: Clock): Receiver => ({
  ...receiver,
  async send(notifications, signal) {
    while (!lease.isLeader()) {
      if (signal.aborted) return { ok: false, error: "this daemon does not lead", isFinal: false };
      await clock.sleep(LEADERSHIP_CHECK_MS, signal);
    }
    return receiver.send(notifications, signal);
  },
});

/** Returns whether two configurations have the same service and the same settings of the collectors. */
export const hasSameCollection = (one: ConfigResources, other: ConfigResources): boolean =>
  isDeepStrictEqual([one.config.service, one.settings], [other.config.service, other.settings]);

/** Returns whether two configurations have the same service and the same limits. */
export const hasSameLimits = (one: ConfigResources, other: ConfigResources): boolean =>
  isDeepStrictEqual(limitsIn(one), limitsIn(other));

const limitsIn = ({ config, settings }: ConfigResources) => [config.service, settings.limits, settings.monthStartsOn];

/** What a daemon shows of the network. */
export type CollectedStatus = Pick<
  StatusSnapshot,
  "snapshot" | "plan" | "collectors" | "ledger" | "month" | "clockSkewMs"
>;

/**
 * What {@link Leader.stop} stops. `remediation`: the collectors keep running under the next configuration; `leading`:
 * the resources stay open, so that the daemon can stand by; `all`: everything.
 */
type StopScope = "remediation" | "leading" | "all";

/** What a daemon runs while it leads. A reload replaces it, except for the term and, if possible, the collection. */
export type Leader = ReturnType<typeof startLeader>;

/**
 * Starts remediation, rendering and notifications on a collection. `active` are the active notifications of the
 * previous configuration.
 */
export function startLeader(
  resources: ConfigResources,
  collection: Collection,
  active: readonly Notification[],
  runtime: Runtime,
  term: LeadershipTerm,
) {
  const { clock, log, shared } = runtime;
  const { config, integrations } = resources;
  const receivers =
    shared === null
      ? integrations.receivers
      : integrations.receivers.map((receiver) => receiverOfLeader(receiver, shared.lease, clock));
  const { client, collectorManager } = collection;
  const { inventory, sessionWalks, reporters } = collection.knownService.collected;
  const notifier = new Notifier({ ...runtime, receivers, facts: term.remediationState.facts });
  notifier.resume(active);
  const remediation = new RemediationController({
    ...runtime,
    ...term,
    config: { ...config, policies: resources.policies },
    client,
    notifier,
    serviceUrl: config.service.base_url,
    journal: term.store.journal,
    inventory,
    sessionWalks,
    detailReporter: reporters.details,
    externalBlockers: integrations.externalBlockers,
    onRead: collectorManager.markChanged,
  });
  collectorManager.setListener((snapshot, plan) => {
    remediation.update(snapshot, plan);
    const now = clock.monotonic();
    const staleAfterMs = byName(COLLECTORS, (collector) => plan[collector]?.freshMs ?? 0);
    const serviceNowMs = client.serviceTime(now) ?? clock.now();
    runtime.exposition
      .refresh({ snapshot, now, serviceNowMs, staleAfterMs, options: config.export })
      .catch((error: unknown) => log.error({ err: error }, "publishing a snapshot failed"));
  });
  return {
    isLeading: true as const,
    resources,
    collection,
    term,
    view: remediation.view,
    ...remediation.operatorCommands,
    collected: (): CollectedStatus => ({
      snapshot: collectorManager.latest(),
      plan: collectorManager.plan(),
      collectors: collectorManager.collectorHealth(),
      ledger: term.rateLimiter.ledger,
      month: term.rateLimiter.month(),
      clockSkewMs: client.clockSkewMs(),
    }),
    /** Notifications that are not resolved, which the next configuration takes over. */
    activeNotifications: () => notifier.activeNotifications(),
    /** Waits at most `postMs` for the response to a POST in flight. */
    async stop(scope: StopScope, postMs: DurationMs = SHUTDOWN_BUDGET.postMs): Promise<void> {
      await Promise.all([remediation.stop(postMs), scope === "remediation" ? null : collectorManager.stop()]);
      if (scope === "all") await collection.resources.transport.close();
      await notifier.stop(SHUTDOWN_BUDGET.notificationsMs);
      if (scope !== "leading") await integrations.close();
    },
  };
}

/** Sets the gauges of a leader that are computed at each scrape. */
export function setLeaderGauges(
  metrics: Pick<DaemonMetrics, "set">,
  { ledger, month, clockSkewMs }: Pick<StatusSnapshot, "ledger" | "month" | "clockSkewMs">,
  rateLimiter: Pick<RateLimiter, "learnedLimits">,
): void {
  const { plan } = ledger.limits;
  metrics.set("proxywarden_month_calls", {}, ledger.monthUsed);
  metrics.set("proxywarden_month_calls_limit", {}, plan.callsPerMonth ?? Number.NaN);
  metrics.set("proxywarden_month_reset_timestamp_seconds", {}, month.endMs / SECOND_MS);
  metrics.set("proxywarden_ratelimit_limit", { category: "plan" }, plan.requestsPerMinute ?? Number.NaN);
  const learned = Object.entries(rateLimiter.learnedLimits()) as [Category, number | null][];
  for (const [category, limit] of learned) {
    metrics.set("proxywarden_ratelimit_learned_limit", { category }, limit ?? Number.NaN);
  }
  metrics.set("proxywarden_service_clock_skew_seconds", {}, (clockSkewMs ?? Number.NaN) / SECOND_MS);
}
