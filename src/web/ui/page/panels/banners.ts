import type { Collector, Status } from "../api.ts";
import { byId, createElement, fill } from "../dom.ts";
import { countNoun, humanize, sinceText, standsBy, timeOfDay, withLocalTimes } from "../format.ts";
import { commandButton, type OperatorCommand } from "./command-buttons.ts";
import { acceptInventory, resetBreaker, resume } from "./daemon-commands.ts";

/** A condition that holds all actions, or that an operator must know about. */
interface Banner {
  readonly tone: "hold" | "wait" | "bad";
  readonly title: string;
  readonly text: string;
  /** The alert whose section of the runbook applies. */
  readonly alert: string;
  /** The command that ends the condition. Absent if there is none. */
  readonly command?: OperatorCommand;
  /** URL of the leader, or null if it is not known. */
  readonly leader?: string | null;
}

/** Dashboard of the daemon (see `grafana/`). */
const DAEMON_DASHBOARD = "/d/proxywarden-daemon";

/** Shows the conditions that hold all actions or that an operator must know about, with the command that ends each. */
export function showBanners(status: Status): void {
  const now = Date.parse(status.now);
  const banners = bannersOf(status).map((banner) => ({ ...banner, text: withLocalTimes(banner.text, now) }));
  fill(byId("banners"), [banners, status.links], () => banners.map((banner) => bannerElement(banner, status.links)));
}

function bannersOf({
  remediation,
  leader,
  nodes,
  collectors,
  config_rejected_at: rejectedAt,
  now: at,
}: Status): readonly Banner[] {
  const now = Date.parse(at);
  const isStandby = standsBy(leader);
  const banners: Banner[] = [];
  if (isStandby && nodes !== null) {
    const readAt = collectors.nodes.last_success_at;
    const text = `The lease of this daemon has ended, so it neither polls nor acts. ${nodesText(readAt, now)}`;
    banners.push({ tone: "hold", title: "Not leading", text, alert: "ProxywardenNoLeader" });
  } else if (isStandby) {
    const text = `The leader is ${leader.name ?? "not known"}. Only the leader shows the fleet and the limits. The rest is read from the journal, and commands are forwarded.`;
    banners.push({ tone: "hold", title: "Standby", text, alert: "ProxywardenNoLeader", leader: leader.url });
  }
  const { failure } = collectors.nodes;
  if (!isStandby && failure !== null) banners.push(nodesBanner(failure, collectors.nodes.last_success_at, now));
  if (remediation.paused !== null) {
    const { at: pausedAt, until, reason, operator } = remediation.paused;
    const text = `${sinceText(pausedAt, operator, until, now)}: ${sentence(reason)} All actions are on hold.`;
    banners.push({ tone: "wait", title: "Paused", text, command: resume, alert: "ProxywardenPaused" });
  }
  if (remediation.breaker !== null) {
    const { opened_at, nodes, causes } = remediation.breaker;
    const text = `since ${timeOfDay(opened_at, now)}, after ${countNoun(nodes, "node")} had fired or been lost${causes === null ? "" : ` (${causes})`}. All actions are on hold until an operator resets it.`;
    const alert = "ProxywardenBreakerOpen";
    banners.push({ tone: "bad", title: "Circuit breaker open", text, command: resetBreaker, alert });
  }
  // Once the lease has ended, another daemon may lead and try an action.
  if (!isStandby && remediation.credentials !== null) {
    const text = `${sentence(remediation.credentials)} All actions are on hold until one is tried, 15 minutes after the last rejection.`;
    const title = "The service rejected the API key";
    banners.push({ tone: "bad", title, text, alert: "ProxywardenApiKeyRefused" });
  }
  for (const { reason, detail } of isStandby ? [] : remediation.trust) {
    // The daemon rejects the command after a walk that could not read every page.
    const hasWalkMissedNodes = reason === "inventory_incomplete" && failure?.reason === "incomplete";
    const command = reason === "inventory_shrunk" || hasWalkMissedNodes ? { command: acceptInventory } : {};
    const text = `${humanize(reason)}: ${detail}`;
    const title = "Fleet data is not trusted; actions are on hold";
    banners.push({ tone: "wait", title, text, alert: "ProxywardenUntrusted", ...command });
  }
  if (remediation.storm_until !== null) {
    const text = `Actions are on hold until at least ${timeOfDay(remediation.storm_until, now)}: ${remediation.storm_cause}.`;
    banners.push({ tone: "wait", title: "Storm", text, alert: "ProxynetFleetOffline" });
  }
  if (rejectedAt !== null) {
    const text = `at ${timeOfDay(rejectedAt, now)}. The previous configuration stays active. Run proxywarden check to list the errors.`;
    const title = "The new configuration was rejected";
    banners.push({ tone: "wait", title, text, alert: "ProxywardenConfigReloadFailed" });
  }
  if (remediation.round_failure !== null) {
    const text = `${sentence(remediation.round_failure)} The log has the details.`;
    banners.push({ tone: "bad", title: "Remediation has stalled", text, alert: "ProxywardenRemediationStalled" });
  }
  if (remediation.journal !== null) {
    // A leader whose lease has ended is shown like a standby.
    const title = isStandby ? "The journal can't be reached" : "Actions can't be recorded, and are on hold";
    banners.push({ tone: "bad", title, text: remediation.journal, alert: "ProxywardenJournalNotWritable" });
  }
  return banners;
}

/** Ends a text, such as the reason of an operator, with a period if it has none. */
const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

/** Returns the banner about nodes that can't be read. `readAt` is the end of the last walk that succeeded, or null. */
function nodesBanner(
  { reason, message }: NonNullable<Collector["failure"]>,
  readAt: string | null,
  now: number,
): Banner {
  const banner = { tone: "bad", alert: "ProxywardenBlind" } as const;
  if (reason === "incomplete") {
    // The nodes that the walk has shown are up to date.
    const last =
      readAt === null
        ? "No walk has read all of it yet."
        : `The last walk that read all of it ended at ${timeOfDay(readAt, now)}.`;
    return { ...banner, title: "The node list is incomplete", text: `${sentence(message)} ${last}` };
  }
  const text = `${humanize(reason)}: ${sentence(message)} ${nodesText(readAt, now)}`;
  return { ...banner, title: "The nodes can't be read", text };
}

/** Returns how old the data of nodes is. `readAt` is the end of the last walk that succeeded, or null. */
const nodesText = (readAt: string | null, now: number): string =>
  readAt === null ? "No data yet." : `Node data is from ${timeOfDay(readAt, now)}.`;

function bannerElement(banner: Banner, { runbook, grafana }: Status["links"]): HTMLElement {
  const { tone, title, text, alert, command, leader = null } = banner;
  return createElement(
    `div.banner.tone-${tone}`,
    createElement("b", title),
    createElement("span", text),
    leader === null ? null : createElement("a", { href: leader }, "Open the leader"),
    runbook === null ? null : externalLink("Runbook", `${runbook}#${alert.toLowerCase()}`),
    grafana === null ? null : externalLink("Grafana", `${grafana}${DAEMON_DASHBOARD}`),
    command === undefined ? null : commandButton(command, command.path),
  );
}

/** Creates a link that opens in a new tab. */
export const externalLink = (title: string, href: string): HTMLElement =>
  createElement("a", { href, target: "_blank", rel: "noreferrer" }, title);
