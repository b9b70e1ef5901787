import type { LabelsOf } from "../../metrics/daemon-metrics.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { RemediationContext } from "../context.ts";
import type { RemediationState } from "../state/journaled-state.ts";

/** Shows each open episode as a series, by its node. */
export interface EpisodeGauge {
  /** Updates the series to the open episodes. */
  show(): void;
  /** Removes all series. */
  clear(): void;
}

/**
 * Series at most. Limits keep those beyond firing far below it; but a region that goes dark may open an episode for
 * each of its thousands of nodes, and a page must not grow with a disaster. `proxywarden_episodes` counts them all.
 */
export const EPISODE_SERIES_MAX = 1_000;

const FAMILY = "proxywarden_node_episode";

type Labels = LabelsOf<typeof FAMILY>;

/** Dependencies of the gauge. */
export type EpisodeGaugeDeps = Pick<RemediationContext, "metrics"> & {
  readonly remediationState: Pick<RemediationState, "records">;
};

/** Creates a gauge without series. */
export function createEpisodeGauge({ remediationState, metrics }: EpisodeGaugeDeps): EpisodeGauge {
  const { records } = remediationState;
  let shown: ReadonlyMap<string, Labels> = new Map();

  const labelsOf = ({ id, node, policy, state }: Episode): Labels => ({
    node_id: node,
    policy,
    // Closed episodes, which have other states, are not shown.
    state: state as Labels["state"],
    action: records.actionsOf(id).findLast(({ sentAt }) => sentAt !== null)?.request.kind ?? "none",
  });

  function setSeries(labels: readonly Labels[]): void {
    const wanted = new Map(labels.map((each) => [JSON.stringify(each), each]));
    for (const [key, each] of shown) if (!wanted.has(key)) metrics.remove(FAMILY, each);
    for (const [key, each] of wanted) if (!shown.has(key)) metrics.set(FAMILY, each, 1);
    shown = wanted;
  }

  return {
    show() {
      const open = records.openEpisodes();
      const [firing, omitted] = [open.filter(isFiring), open.filter((episode) => !isFiring(episode))];
      setSeries([...omitted, ...firing].slice(0, EPISODE_SERIES_MAX).map(labelsOf));
    },
    clear: () => setSeries([]),
  };
}

const isFiring = ({ state }: Episode): boolean => state === "firing";
