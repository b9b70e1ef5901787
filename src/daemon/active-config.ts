import type { DurationMs } from "../base/duration.ts";
import type { Notification } from "../model/remediation/notification.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import { createNotifier } from "../notify/notifier.ts";
import { type RemediationController, startRemediationController } from "../remediation/controller.ts";
import type { Plan } from "../scheduling/planner.ts";
import type { Collection } from "./collection.ts";
import type { ConfigResources } from "./config-resources.ts";
import type { DaemonDeps, Runtime, ShutdownBudget } from "./runtime.ts";

/** The active configuration: everything that a reload replaces. */
export interface ActiveConfig {
  readonly resources: ConfigResources;
  readonly collection: Collection;
  readonly remediation: RemediationController;
  /** Notifications that are not resolved: the next configuration takes them over. */
  activeNotifications(): readonly Notification[];
  /** Stops remediation, and with `all` the collectors too. */
  stop(what: "remediation" | "all", budget: ShutdownBudget): Promise<void>;
}

/** Starts remediation and rendering on a collection. `activeNotifications`: those of the previous configuration. */
export function activateConfig(
  resources: ConfigResources,
  collection: Collection,
  activeNotifications: readonly Notification[],
  { clock, log, random }: DaemonDeps,
  { metrics, exposition, store, remediationState }: Runtime,
): ActiveConfig {
  const { config, rules, integrations } = resources;
  const { client, collectorManager } = collection;
  const notifier = createNotifier({ receivers: integrations.receivers, clock, random, log, metrics });
  notifier.resume(activeNotifications);
  const options = {
    nodeLabels: config.export.node_labels,
    topCustomers: config.export.top_customers,
    deny: new Set(config.export.deny),
    seriesMax: config.export.series_max,
  };
  const remediation = startRemediationController({
    ...{ rules, remediationState, client, notifier, clock, metrics, log },
    serviceUrl: config.service.base_url,
    journal: store.journal,
    inventory: collection.knownService.collected.inventory,
    externalBlockers: integrations.externalBlockers,
    onRead: collectorManager.markChanged,
  });
  collection.setListener((snapshot, plan) => {
    remediation.update(snapshot, plan);
    const now = clock.monotonic();
    const serviceNowMs = client.serviceTime(now) ?? clock.now();
    exposition
      .refresh({ snapshot, now, serviceNowMs, staleAfterMs: staleAfterMs(plan), options })
      .catch((error: unknown) => log.error({ err: error }, "rendering a snapshot failed"));
  });
  return {
    ...{ resources, collection, remediation },
    activeNotifications: notifier.activeNotifications,
    async stop(what, { postMs, notificationsMs }) {
      await Promise.all([remediation.stop(postMs), what === "all" ? collection.stop() : null]);
      if (what === "all") await collection.close();
      await notifier.stop(notificationsMs);
      await integrations.close();
    },
  };
}

const staleAfterMs = (plan: Plan) =>
  Object.fromEntries(COLLECTORS.map((collector) => [collector, plan[collector]?.freshMs ?? 0])) as Readonly<
    Record<Collector, DurationMs>
  >;
