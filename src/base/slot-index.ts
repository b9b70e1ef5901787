/**
 * Slots by id for successive columns of ids, in which most slots keep their id. A new map of a hundred thousand ids
 * blocks the event loop for more than ten milliseconds; an update takes a fraction of that.
 */
export class SlotIndex {
  readonly #slots = new Map<string, number>();
  #ids: readonly string[] = [];

  /** Returns the slots of the ids, except "", which marks an empty slot. The map is valid until the next call. */
  of(ids: readonly string[]): ReadonlyMap<string, number> {
    if (ids === this.#ids) return this.#slots;
    const previous = this.#ids;
    for (let slot = 0; slot < Math.max(previous.length, ids.length); slot++) {
      const [before, now] = [previous[slot] ?? "", ids[slot] ?? ""];
      if (before === now) continue;
      // The id may have moved to a lower slot.
      if (this.#slots.get(before) === slot) this.#slots.delete(before);
      if (now !== "") this.#slots.set(now, slot);
    }
    this.#ids = ids;
    return this.#slots;
  }
}
