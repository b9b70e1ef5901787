import type { EpisodeView } from "../../../api/row-views.ts";
import { detailElement, rowElement } from "../activity/activity-elements.ts";
import { type ActivityLine, actionLine, commandLine, decisionLine, toneOf } from "../activity/activity-lines.ts";
import type { NodeDocument } from "../api.ts";
import { createElement } from "../dom.ts";
import { countNoun, formatDuration, humanize, withNodeName } from "../format.ts";

interface HistoryEntry extends Pick<ActivityLine, "at" | "tone" | "badge" | "detail" | "blockers"> {
  readonly text: string;
}

/** Maximum number of entries. The API has more. */
const HISTORY_ENTRIES_MAX = 60;

/** Creates the list of a node's latest episodes, decisions, actions and operator commands, newest first. */
export function nodeHistoryElement({ id, name, ...node }: NodeDocument): HTMLElement {
  const lines = [...node.actions.map(actionLine), ...node.decisions.map(decisionLine), ...node.orders.map(commandLine)];
  const entries = [...node.episodes.flatMap(episodeEntries), ...lines.map(lineEntry)]
    .sort((one, other) => (one.at < other.at ? 1 : -1))
    .slice(0, HISTORY_ENTRIES_MAX);
  if (entries.length === 0) return createElement("p.muted", "No decisions or actions recorded for this node.");
  return createElement(
    "ol.activity.history",
    ...entries.map((entry) => {
      const detail = detailElement(withNodeName(entry.detail, id, name ?? null), entry.blockers);
      return rowElement(entry, [createElement("span.what", entry.text)], [detail]);
    }),
  );
}

function episodeEntries(episode: EpisodeView): readonly HistoryEntry[] {
  const { opened_at, closed_at, state, acted } = episode;
  const text = [episode.id, policyText(episode.policy, episode.dry_run)].join(", ");
  const opened = { at: opened_at, tone: "hold", badge: "opened", text, detail: "", blockers: [] };
  if (closed_at === null) return [opened];
  const took = formatDuration((Date.parse(closed_at) - Date.parse(opened_at)) / 1_000);
  const detail = `${countNoun(acted, "step")} in ${took}`;
  return [opened, { at: closed_at, tone: toneOf(state), badge: humanize(state), text, detail, blockers: [] }];
}

function lineEntry({ kind, key, summary, policy, isDryRun, ...line }: ActivityLine): HistoryEntry {
  const id = kind === "actions" ? key : "";
  const source = policy === null ? "" : policyText(policy, isDryRun);
  return { ...line, text: [summary, source, id].filter(Boolean).join(", ") };
}

const policyText = (policy: string, isDryRun: boolean): string => `policy ${policy}${isDryRun ? " (dry run)" : ""}`;
