import type { EpisodeView } from "../../../api/row-views.ts";
import { detailElement, namedDetail, rowElement } from "../activity/activity-elements.ts";
import { type ActivityLine, actionLine, commandLine, decisionLine, toneOf } from "../activity/activity-lines.ts";
import type { NodeDocument } from "../api.ts";
import { createElement } from "../dom.ts";
import { countNoun, formatDuration, humanize } from "../format.ts";

interface HistoryEntry extends Pick<ActivityLine, "at" | "tone" | "badge" | "detail" | "blockers"> {
  readonly text: string;
}

/** Maximum number of entries. The API has more. */
const HISTORY_ENTRIES_MAX = 60;

/** Creates the list of a node's latest episodes, decisions, actions and operator commands, newest first. */
export function nodeHistoryElement({ id, name, ...node }: NodeDocument): HTMLElement {
  const lines = [...node.actions.map(actionLine), ...node.decisions.map(decisionLine), ...node.orders.map(commandLine)];
  // Entries of the same time keep this order: an action ends before its episode is closed, and follows its decision.
  const entries = [
    ...node.episodes.flatMap(closedEntry),
    ...lines.map((line) => lineEntry(line, namedDetail(line, id, name ?? null))),
    ...node.episodes.map(openedEntry),
  ]
    .sort((one, other) => Date.parse(other.at) - Date.parse(one.at))
    .slice(0, HISTORY_ENTRIES_MAX);
  if (entries.length === 0) return createElement("p.muted", "No decisions or actions recorded for this node.");
  return createElement(
    "ol.activity.history",
    ...entries.map((entry) => {
      const detail = detailElement(entry.detail, entry.blockers);
      return rowElement(entry, [createElement("span.what", entry.text)], [detail]);
    }),
  );
}

function openedEntry({ id, policy, dry_run, opened_at: at }: EpisodeView): HistoryEntry {
  const text = `${id}, ${policyText(policy, dry_run)}`;
  return { at, tone: "hold", badge: "opened", text, detail: "", blockers: [] };
}

/** Returns the entry of a closed episode, or none if it is open. */
function closedEntry(episode: EpisodeView): readonly HistoryEntry[] {
  const { closed_at: at, opened_at, state, acted } = episode;
  if (at === null) return [];
  const took = formatDuration((Date.parse(at) - Date.parse(opened_at)) / 1_000);
  const detail = `${countNoun(acted, "step")} in ${took}`;
  return [{ ...openedEntry(episode), at, tone: toneOf(state), badge: humanize(state), detail }];
}

function lineEntry({ kind, key, summary, policy, isDryRun, ...line }: ActivityLine, detail: string): HistoryEntry {
  const id = kind === "actions" ? key : "";
  const source = policy === null ? "" : policyText(policy, isDryRun);
  return { ...line, detail, text: [summary, source, id].filter(Boolean).join(", ") };
}

const policyText = (policy: string, isDryRun: boolean): string => `policy ${policy}${isDryRun ? " (dry run)" : ""}`;
