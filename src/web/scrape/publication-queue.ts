import { SECOND_MS } from "../../base/duration.ts";
import type { DaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { RenderInput } from "../../metrics/families/family.ts";
import { EMPTY_NETWORK_EXPOSITION, type NetworkExposition, NetworkRenderer } from "../../metrics/render/renderer.ts";
import type { Clock } from "../../model/ports.ts";
import { nextTurn, runInSlices } from "../../platform/event-loop.ts";

/** Dependencies of {@link createPublicationQueue}. */
interface PublicationQueueDeps {
  readonly clock: Pick<Clock, "monotonic">;
  /** Called when an exposition becomes the current one. `input` is null if it is empty. */
  onShown(exposition: NetworkExposition, input: RenderInput | null): void;
  readonly daemonMetrics: Pick<DaemonMetrics, "set">;
  /** Called after each snapshot is published; the next publication waits for it. */
  prepare(exposition: NetworkExposition): Promise<void>;
}

/** Creates a queue that publishes snapshots one after the other. If several are waiting, it publishes only the newest. */
export function createPublicationQueue({ clock, daemonMetrics, onShown, prepare }: PublicationQueueDeps) {
  let renderer = new NetworkRenderer();
  let exposition = EMPTY_NETWORK_EXPOSITION;
  /** Next input to publish. Null means an empty exposition. */
  let pendingInput: RenderInput | null = null;
  let current = Promise.resolve();
  let next: Promise<void> | null = null;

  function show(shown: NetworkExposition, input: RenderInput | null): void {
    exposition = shown;
    onShown(exposition, input);
  }

  function clear(): void {
    renderer = new NetworkRenderer();
    show(EMPTY_NETWORK_EXPOSITION, null);
  }

  function publishPending(): Promise<void> {
    next = null;
    if (pendingInput === null) {
      clear();
      return Promise.resolve();
    }
    const publishing = publish(pendingInput);
    // The next one waits for the preparation, and for a turn of the event loop in which waiting scrapes are answered.
    current = publishing.then(() => prepare(exposition)).then(nextTurn, () => undefined);
    return publishing;
  }

  async function publish(input: RenderInput): Promise<void> {
    const startedAt = clock.monotonic();
    try {
      show(await runInSlices(renderer.refresh(input), clock), input);
    } catch (error) {
      // The renderer may have stopped halfway.
      clear();
      throw error;
    }
    const tookSeconds = (clock.monotonic() - startedAt) / SECOND_MS;
    daemonMetrics.set("proxywarden_export_refresh_duration_seconds", {}, tookSeconds);
  }

  return {
    /**
     * Resolves when this snapshot or a newer one is published, and rejects if that fails. Null removes the metrics of the
     * network.
     */
    add(input: RenderInput | null): Promise<void> {
      pendingInput = input;
      next ??= current.then(publishPending);
      return next;
    },
    /** Returns the current exposition. */
    exposition: (): NetworkExposition => exposition,
  };
}
