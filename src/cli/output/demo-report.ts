import type { Daemon } from "../../daemon/daemon.ts";
import { rateLimitedCount, replyCounts, type SimulatedService } from "../../simulator/http/service.ts";
import { statusView } from "../../web/api/status-views.ts";
import { formatDuration } from "../../web/ui/page/format.ts";

/** Returns the report at the end of a demo: API calls, actions and age of the data. */
export async function demoReport(daemon: Daemon, service: SimulatedService): Promise<string> {
  const calls = replyCounts(service).map(
    ({ endpoint, status, count }) => `  ${String(count).padStart(6)}  ${endpoint}  ${status}`,
  );
  const actions = await actionCounts(daemon.url());
  const { collectors } = statusView(daemon.statusSnapshot());
  const ages = Object.entries(collectors).map(([collector, { age_seconds: age }]) => {
    const shown = age === null ? "no data yet" : `${formatDuration(age.median)}  ${formatDuration(age.max)}`;
    return `  ${collector.padEnd(9)} ${shown}`;
  });
  return `
calls, by endpoint and response status
${calls.join("\n")}
  ${String(rateLimitedCount(service)).padStart(6)}  answered 429

actions, by policy, kind and outcome
${actions.length === 0 ? "  none" : actions.join("\n")}

age of the data, median and maximum
${ages.join("\n")}
`;
}

/** The counters of actions in `/metrics` that are not zero. */
async function actionCounts(url: string): Promise<string[]> {
  const page = await (await fetch(`${url}/metrics`)).text();
  const samples = /^proxywarden_actions_total\{policy="(.*)",action="(.*)",outcome="(.*)"\} ([1-9]\d*)$/gm;
  return [...page.matchAll(samples)].map(
    ([, policy, action, outcome, count]) => `  ${count!.padStart(6)}  ${policy}  ${action}  ${outcome}`,
  );
}
