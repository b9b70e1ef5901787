import { setImmediate as nextTurn } from "node:timers/promises";
import type { DurationMs } from "../../base/duration.ts";
import type { RenderInput } from "../../metrics/families/family.ts";
import {
  EMPTY_NETWORK_EXPOSITION,
  type NetworkExposition as Page,
  releaseExposition,
} from "../../metrics/render/exposition.ts";
import { createNetworkRenderer } from "../../metrics/render/renderer.ts";
import type { Clock } from "../../model/ports.ts";

/** What it is made of. */
export interface RenderQueueDeps {
  readonly clock: Pick<Clock, "monotonic">;
  /** How long the loop is kept from other work at a time. */
  readonly sliceMs: DurationMs;
  /** Told of a page from when on it is shown. */
  onShown(page: Page): void;
  /** Told of how long a rendering took. */
  onRendered(tookMs: DurationMs): void;
  /** What is to be done with a page before the next one is begun. */
  prepare(page: Page): Promise<void>;
}

/** Renders one snapshot after the other; of those that wait, only the newest. */
export interface RenderQueue {
  /** Resolves when this snapshot, or a newer one, is shown. */
  add(input: RenderInput): Promise<void>;
  /** Hands the page that is shown to `take`, in one go, so that no rendering begins before it is held. */
  withCurrentPage<T>(take: (page: Page) => T): Promise<T>;
}

/** Shows an empty page at first. */
export function createRenderQueue({
  clock,
  sliceMs,
  onShown: shown,
  onRendered: rendered,
  prepare,
}: RenderQueueDeps): RenderQueue {
  let renderer = createNetworkRenderer();
  let page = EMPTY_NETWORK_EXPOSITION;
  let pendingInput: RenderInput | null = null;
  let current = Promise.resolve();
  let next: Promise<void> | null = null;
  let rendering: Promise<void> | null = null;

  function show(made: Page): void {
    page = made;
    shown(page);
  }

  function renderWanted(): Promise<void> {
    next = null;
    rendering = render(pendingInput!);
    // The next one waits for the preparation, or they could pile up; and a turn, so that waiting scrapes get their page.
    current = rendering
      .then(() => prepare(page))
      .then(
        () => nextTurn(),
        () => undefined,
      );
    return rendering;
  }

  async function render(input: RenderInput): Promise<void> {
    const startedAt = clock.monotonic();
    // From here on only its readers hold the page: what they don't read is written over, and needs no memory twice.
    releaseExposition(page);
    page = EMPTY_NETWORK_EXPOSITION;
    try {
      show(await runInSlices(renderer.refresh(input), clock, sliceMs));
    } catch (error) {
      // A defect, and what the renderer keeps may be half of one rendering and half of another.
      renderer = createNetworkRenderer();
      show(EMPTY_NETWORK_EXPOSITION);
      throw error;
    } finally {
      rendering = null;
    }
    rendered(clock.monotonic() - startedAt);
  }

  return {
    add(input) {
      pendingInput = input;
      next ??= current.then(renderWanted);
      return next;
    },
    async withCurrentPage(take) {
      while (rendering !== null) await rendering.catch(() => undefined);
      return take(page);
    },
  };
}

async function runInSlices(steps: Iterator<unknown, Page>, clock: Pick<Clock, "monotonic">, sliceMs: DurationMs) {
  let sliceEnd = clock.monotonic() + sliceMs;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (clock.monotonic() < sliceEnd) continue;
    await nextTurn();
    sliceEnd = clock.monotonic() + sliceMs;
  }
}
