import { byName } from "../../../src/base/by-name.ts";
import type { RenderInput } from "../../../src/metrics/families/family.ts";
import { NetworkRenderer } from "../../../src/metrics/render/renderer.ts";
import { COLLECTORS } from "../../../src/model/snapshot.ts";
import { render, textOf } from "../../metrics/naive-renderer.ts";
import type { VirtualDaemon } from "./virtual-daemon.ts";

/** Returns a function that renders the metrics of the network in the text format, as the daemon does for a scrape. */
export function createNetworkPage(daemon: VirtualDaemon, options: RenderInput["options"]): () => string {
  const renderer = new NetworkRenderer();
  return () => {
    const snapshot = daemon.snapshots.last;
    if (snapshot === null) return "";
    const plan = daemon.collectorManager.plan();
    const staleAfterMs = byName(COLLECTORS, (collector) => plan[collector]?.freshMs ?? 0);
    const [now, serviceNowMs] = [daemon.clock.monotonic(), daemon.clock.now()];
    return textOf(render(renderer, { snapshot, now, serviceNowMs, staleAfterMs, options }));
  };
}
