import type { Notice } from "../../model/remediation/notification.ts";
import type { EpochMs } from "../../model/time.ts";
import { INCIDENT_MS_MAX } from "../../policy/guards/correlated-failure.ts";
import { keyRefusal } from "../execution/api-key-rejection.ts";
import type { Sight } from "../evaluation/inventory-trust.ts";
import type { Situation } from "../evaluation/fleet-health.ts";
import type { Ward } from "../context.ts";

/** Tells people what holds the whole fleet, or a place of it: when it begins, and when it is over. */
export interface Alarms {
  /** Compares what is so now with what was told. */
  tell(sight: Sight): void;
}

type Alarm = Pick<Notice, "kind" | "key" | "summary" | "startsAt"> & { readonly region?: string };

/** Alarms of which none is told yet. What still lasts after a restart is told again: receivers know it by its key. */
export function createAlarms(ward: Ward, situation: Situation): Alarms {
  const { books, notifier, log } = ward;
  const told = new Map<string, Alarm>();
  let brokenSince: EpochMs | null = null;

  function* present(sight: Sight): Generator<Alarm> {
    const storm = situation.storm();
    if (storm !== null) {
      const summary =
        "A storm: too many nodes are unhealthy at once; no node is touched until it is over and has cooled down";
      yield { kind: "storm", key: `storm/${storm.since}`, summary, startsAt: storm.since };
    }
    const { open } = situation.breaker();
    if (open !== null) {
      const summary = `The breaker is open: ${open.nodes} nodes fired; no node is touched until a person resets it`;
      yield { kind: "breaker", key: `breaker/${open.openedAt}`, summary, startsAt: open.openedAt };
    }
    for (const { place, nodes, from, to } of situation.incidents()) {
      const latest = new Date(to + INCIDENT_MS_MAX).toISOString();
      const summary = `One incident: ${nodes.size} nodes of ${place || "no place"} went bad together; no action is taken on them until they recover, at the latest until ${latest}`;
      yield { kind: "incident", key: `incident/${place}`, summary, startsAt: from, region: place };
    }
    const refusal = keyRefusal(ward);
    if (refusal !== null) {
      const { message, since } = refusal;
      const summary = `The service refuses the API key for actions, and every action is on hold: ${message}`;
      yield { kind: "credentials", key: `credentials/${since}`, summary, startsAt: since };
    }
    if (brokenSince !== null) {
      const why = sight.blockers.map(({ detail }) => detail).join("; ");
      const summary = `What is seen is not to be believed, and no node is touched: ${why}`;
      yield { kind: "untrusted", key: `untrusted/${brokenSince}`, summary, startsAt: brokenSince };
    }
  }

  function send({ region = undefined, ...alarm }: Alarm, endsAt: EpochMs | null): void {
    const about = { policy: null, node: null, episode: null, region: region ?? null } as const;
    notifier.notify({ ...about, ...alarm, severity: "critical", endsAt });
  }

  return {
    tell(sight) {
      const now = books.now();
      brokenSince = sight.isBroken ? (brokenSince ?? now) : null;
      const alarms = new Map([...present(sight)].map((alarm) => [alarm.key, alarm]));
      for (const [key, alarm] of alarms) {
        if (told.has(key)) continue;
        told.set(key, alarm);
        log.error({ alarm: alarm.kind, region: alarm.region }, alarm.summary);
        send(alarm, null);
      }
      for (const [key, alarm] of told) {
        if (alarms.has(key)) continue;
        told.delete(key);
        log.info({ alarm: alarm.kind, region: alarm.region }, "an alarm is over");
        send(alarm, now);
      }
    },
  };
}
