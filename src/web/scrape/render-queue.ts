import type { DurationMs } from "../../base/duration.ts";
import type { RenderInput } from "../../metrics/families/family.ts";
import {
  createNetworkRenderer,
  EMPTY_NETWORK_EXPOSITION,
  type NetworkExposition as Page,
} from "../../metrics/render/renderer.ts";
import type { Clock } from "../../model/ports.ts";
import { nextTurn, runInSlices } from "../../platform/event-loop.ts";

/** Dependencies of {@link createRenderQueue}. */
interface RenderQueueDeps {
  readonly clock: Pick<Clock, "monotonic">;
  /** Called when an exposition becomes the current one. `input` is null if it is empty. */
  onShown(page: Page, input: RenderInput | null): void;
  /** Called when a snapshot has been published. */
  onPublished(tookMs: DurationMs): void;
  /** Called after each publication; the next one waits for it. */
  prepare(page: Page): Promise<void>;
}

/** Creates a queue that publishes snapshots one after the other. Of the waiting ones it publishes only the newest. */
export function createRenderQueue({ clock, onShown, onPublished, prepare }: RenderQueueDeps) {
  let renderer = createNetworkRenderer();
  let page = EMPTY_NETWORK_EXPOSITION;
  /** Next input to publish. Null means an empty exposition. */
  let pendingInput: RenderInput | null = null;
  let current = Promise.resolve();
  let next: Promise<void> | null = null;

  function show(rendered: Page, input: RenderInput | null): void {
    page = rendered;
    onShown(page, input);
  }

  function renderPending(): Promise<void> {
    next = null;
    if (pendingInput === null) {
      renderer = createNetworkRenderer();
      show(EMPTY_NETWORK_EXPOSITION, null);
      return Promise.resolve();
    }
    const rendering = render(pendingInput);
    // The next one waits for the preparation, and for a turn of the event loop in which waiting scrapes are answered.
    current = rendering.then(() => prepare(page)).then(nextTurn, () => undefined);
    return rendering;
  }

  async function render(input: RenderInput): Promise<void> {
    const startedAt = clock.monotonic();
    try {
      show(await runInSlices(renderer.refresh(input), clock), input);
    } catch (error) {
      // The renderer may have stopped halfway.
      renderer = createNetworkRenderer();
      show(EMPTY_NETWORK_EXPOSITION, null);
      throw error;
    }
    onPublished(clock.monotonic() - startedAt);
  }

  return {
    /** Resolves when this snapshot or a newer one is published. Null removes the metrics of the network. */
    add(input: RenderInput | null): Promise<void> {
      pendingInput = input;
      next ??= current.then(renderPending);
      return next;
    },
    /** Returns the current exposition. */
    page: (): Page => page,
  };
}
