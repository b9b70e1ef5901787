import type { DurationMs } from "../base/duration.ts";
import type { Notification } from "../model/remediation/notification.ts";
import type { CommandReply, OperatorCommand } from "../model/remediation/operator-command.ts";
import { perCollector } from "../model/snapshot.ts";
import { createNotifier, type UndeliveredNotifications } from "../notify/notifier.ts";
import { RemediationController } from "../remediation/controller.ts";
import type { OperatorCommands, RemediationView } from "../remediation/status/views.ts";
import type { StatusSnapshot } from "../web/api/status-views.ts";
import type { Collection } from "./collection.ts";
import type { ConfigResources } from "./config-resources.ts";
import type { LeadershipTerm } from "./leadership-term.ts";
import type { Runtime } from "./runtime.ts";
import { SHUTDOWN_BUDGET } from "./shutdown.ts";

/** What a daemon shows of the network. */
export type CollectedStatus = Pick<StatusSnapshot, "snapshot" | "plan" | "collectors" | "ledger" | "clockSkewMs">;

/** The active configuration, of a leader or of a standby. */
export interface ActiveConfig {
  readonly resources: ConfigResources;
  readonly view: RemediationView;
  execute(command: OperatorCommand): Promise<CommandReply>;
  collected(): CollectedStatus;
}

/**
 * What {@link LeaderConfig.stop} stops. With `remediation` the collectors keep running under the next configuration;
 * with `leading` the resources stay open, so that the daemon can stand by; `all` stops everything.
 */
export type StopScope = "remediation" | "leading" | "all";

/** The active configuration of a leader: everything that a reload replaces. */
export interface LeaderConfig extends ActiveConfig, OperatorCommands {
  readonly isLeading: true;
  readonly collection: Collection;
  readonly term: LeadershipTerm;
  /** Notifications that are not resolved, which the next configuration takes over. */
  activeNotifications(): readonly Notification[];
  /**
   * Returns the notifications that were not delivered. `postMs` is the time that a POST in flight has left, by default
   * that of {@link SHUTDOWN_BUDGET}.
   */
  stop(scope: StopScope, postMs?: DurationMs): Promise<UndeliveredNotifications>;
}

/** What a configuration takes over from the previous one. */
interface EarlierNotifications {
  readonly active: readonly Notification[];
  readonly undelivered: UndeliveredNotifications;
}

/** Starts remediation and rendering on a collection. */
export function activateConfig(
  resources: ConfigResources,
  collection: Collection,
  earlier: EarlierNotifications,
  { clock, log, random, metrics, exposition }: Runtime,
  term: LeadershipTerm,
): LeaderConfig {
  const { config, rules, integrations } = resources;
  const { client, collectorManager } = collection;
  const { collected } = collection.knownService;
  const notifier = createNotifier({ receivers: integrations.receivers, clock, random, log, metrics });
  notifier.resume(earlier.active, earlier.undelivered);
  const options = {
    nodeLabels: config.export.node_labels,
    topCustomers: config.export.top_customers,
    deny: new Set(config.export.deny),
    seriesMax: config.export.series_max,
  };
  const remediation = new RemediationController({
    ...{ rules, client, notifier, clock, metrics, log },
    remediationState: term.remediationState,
    serviceUrl: config.service.base_url,
    journal: term.store.journal,
    inventory: collected.inventory,
    sessionWalks: collected.sessionWalks,
    detailReporter: collected.reporters.details,
    externalBlockers: integrations.externalBlockers,
    onRead: collectorManager.markChanged,
  });
  collectorManager.setListener((snapshot, plan) => {
    remediation.update(snapshot, plan);
    const now = clock.monotonic();
    const staleAfterMs = perCollector((collector) => plan[collector]?.freshMs ?? 0);
    const serviceNowMs = client.serviceTime(now) ?? clock.now();
    exposition
      .refresh({ snapshot, now, serviceNowMs, staleAfterMs, options })
      .catch((error: unknown) => log.error({ err: error }, "publishing a snapshot failed"));
  });
  return {
    ...{ isLeading: true, resources, collection, term },
    view: remediation.view,
    ...remediation.operatorCommands,
    collected: () => ({
      snapshot: collectorManager.latest(),
      plan: collectorManager.plan(),
      collectors: collectorManager.collectorHealth(),
      ledger: term.rateLimiter.ledger,
      clockSkewMs: client.clockSkewMs(),
    }),
    activeNotifications: notifier.activeNotifications,
    async stop(scope, postMs = SHUTDOWN_BUDGET.postMs) {
      await Promise.all([remediation.stop(postMs), scope === "remediation" ? null : collectorManager.stop()]);
      if (scope === "all") await collection.resources.transport.close();
      const undelivered = await notifier.stop(SHUTDOWN_BUDGET.notificationsMs);
      if (scope !== "leading") await integrations.close();
      return undelivered;
    },
  };
}
