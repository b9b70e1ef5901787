import { DAY_MS, type DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import {
  DETAIL_NUMBER_NAMES,
  type DetailNumber,
  type NodeDetail,
  type NodeId,
  type NodeRecord,
} from "../model/node.ts";
import { USAGES } from "../model/policy/policy.ts";
import type { Fleet, WalkResult } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { type DetailChoice, DetailPriority, type SuspectCause } from "../scheduling/detail-priority.ts";
import { AbsenceTracker, type LookupResult } from "./absence.ts";
import { createLocationTable, mergeLocations } from "./locations.ts";
import { NodeColumns, OLDER_RECORD_MS_MAX, type OnContradiction } from "./node-columns.ts";
import { createUsageScaleCheck, type UsageScale } from "./usage-scale.ts";
import { WalkHistory, type WalkSummary } from "./walk-completeness.ts";

/** The node whose detail is read next, and why it is read out of turn, or null if it is its turn. */
export interface DetailPick {
  readonly id: NodeId;
  readonly cause: SuspectCause | null;
}

/** A node that the list hides is gone if its last_seen stays the same for this long, even if its detail is returned. */
const UNLISTED_MS_MAX: DurationMs = DAY_MS;

/** Numbers of a detail that are stored unchanged; usages are converted to ratios. */
const UNSCALED_NUMBERS = DETAIL_NUMBER_NAMES.filter((name) => !(USAGES as readonly DetailNumber[]).includes(name));

/** The nodes, as walks of the list and reads of details show them. */
export class Inventory {
  readonly #columns = new NodeColumns();
  readonly #slots = new Map<NodeId, number>();
  readonly #freeSlots: number[] = [];
  readonly #locations = createLocationTable();
  readonly #priority = new DetailPriority();
  readonly #absences = new AbsenceTracker();
  readonly #walks = new WalkHistory();
  /** What an operator accepted as missing. */
  readonly acceptance: Pick<WalkHistory, "acceptsMissing" | "acceptMissing" | "restoreAccepted"> = this.#walks;
  readonly history: Pick<WalkHistory, "looksUpFailedPages"> = this.#walks;
  readonly lookups: Pick<AbsenceTracker, "recordDelay"> = this.#absences;
  readonly details: Pick<DetailPriority, "failingNodes" | "hasUnreadNodes" | "setThresholds" | "suspectAt"> =
    this.#priority;
  readonly #usageScale;
  readonly #onRemoved;
  readonly #detailed = new Set<NodeId>();
  /** For each hidden node, its last_seen at the last lookup, and when a lookup first returned this value. */
  readonly #hiddenSince = new Map<NodeId, { readonly lastSeenMs: number; readonly since: MonotonicMs }>();
  #lastDetailAt: MonotonicMs | null = null;

  /** `onRemoved` receives the nodes that have left the fleet. */
  constructor(usageScale: UsageScale, onRemoved: (id: NodeId) => void = () => {}) {
    this.#usageScale = createUsageScaleCheck(usageScale);
    this.#onRemoved = onRemoved;
  }

  has(id: NodeId): boolean {
    return this.#slots.has(id);
  }

  /** Whether any walk has been complete. */
  isKnown(): boolean {
    return this.#walks.latest().settledAt !== null;
  }

  count(): number {
    return this.#slots.size;
  }

  /** Returns the number of nodes whose location is not among the first `locations` ones. */
  countBeyond(locations: number): number {
    return this.#locations.list().length <= locations ? 0 : this.#columns.countFromLocation(locations);
  }

  /**
   * Records a node of the list as observed at `at`, but keeps a later observation. Returns true if the current walk had
   * not shown the node before.
   */
  recordListed(record: NodeRecord, at: MonotonicMs, onContradiction?: OnContradiction): boolean {
    const slot = this.#slotOf(record.id);
    const isOfflineAgain = this.#columns.isOfflineAgain(slot, record);
    const isWritten = this.#writeRecord(slot, record, at, "list");
    if (isWritten && isOfflineAgain) onContradiction?.(record, "contradicting_status");
    if (!isWritten && this.#columns.contradicts(slot, record, at)) onContradiction?.(record, "older_record");
    const isNew = this.#absences.markShown(slot);
    if (isNew) this.#hiddenSince.delete(record.id);
    // A list that shifts shows a node again a moment later, which is not a new observation.
    if (isNew && isWritten) this.#priority.recordListed(slot, record, at);
    return isNew;
  }

  /** Ends the reading of the list, before lookups. See {@link WalkHistory.endList}. */
  endList(shownMin: Share, at: MonotonicMs, isWhole = true): void {
    this.#walks.endList({ known: this.count(), shown: this.#absences.shownNodes() }, shownMin, at, isWhole);
  }

  /**
   * Returns at most `max` nodes that the current walk has not shown and that are due for a lookup by id, longest absent
   * first.
   */
  nodesToLookUp(max: number): readonly NodeId[] {
    const due = this.#absences.dueForLookup(this.#slots.values());
    return due.slice(0, max).map((slot) => this.#columns.id(slot));
  }

  /** Records the lookup of a node that the current walk has not shown. */
  recordLookup(id: NodeId, found: LookupResult, at: MonotonicMs): void {
    const slot = this.#slots.get(id);
    if (slot === undefined || this.#absences.isShown(slot)) return;
    const isUnlistedTooLong = found === "alive" && this.#walks.isWhole() && this.#isUnlistedTooLong(id, slot, at);
    const isGone = !this.#walks.keepsAll() && (found === "gone" || isUnlistedTooLong);
    this.#absences.recordLookup(slot, isGone ? "gone" : found === "gone" ? "unknown" : found);
    if (isGone) this.#removeNode(id, slot);
  }

  /** Returns a node that the current walk has shown, or null if it has not shown any. */
  anyListed(): NodeId | null {
    for (const [id, slot] of this.#slots) if (this.#absences.isShown(slot)) return id;
    return null;
  }

  /** Ends a walk and returns its result. Removes nodes that enough walks in a row did not show. */
  endWalk(walk: WalkSummary, at: MonotonicMs): WalkResult {
    const known = [...this.#slots.values()];
    const unlisted = known.filter((slot) => !this.#absences.isShown(slot));
    const hidden = unlisted.filter((slot) => this.#absences.isHidden(slot)).length;
    const counts = { known: known.length, shown: known.length - unlisted.length, hidden };
    const { result, evidence } = this.#walks.endWalk(walk, counts, at);
    for (const slot of this.#absences.endWalk(known, evidence)) this.#removeNode(this.#columns.id(slot), slot);
    this.#columns.renumberLocations(this.#locations.compact(this.#columns.occupiedLocations()));
    return result;
  }

  /**
   * Records a detail as observed at `at`, which is `epochMs` by the wall clock, but keeps later observations. Returns
   * `outdated` if its status contradicts an earlier record with a later last_seen, or `bad_scale` if its usage is the
   * first to contradict the declared scale.
   */
  recordDetail(detail: NodeDetail, at: MonotonicMs, epochMs: EpochMs): "taken" | "outdated" | "bad_scale" {
    const slot = this.#slots.get(detail.id);
    if (slot === undefined || this.#columns.number("detailedAt", slot) > at) return "taken";
    const isWritten = this.#writeRecord(slot, detail, at, "detail");
    if (!isWritten && this.#columns.contradicts(slot, detail, at)) return "outdated";
    for (const name of UNSCALED_NUMBERS) this.#columns.setNumber(name, slot, detail[name]);
    this.#columns.setNumber("detailedAt", slot, at);
    this.#columns.setNumber("detailedAtEpochMs", slot, epochMs);
    this.#columns.setNumber("detailLastSeenMs", slot, detail.lastSeenMs);
    this.#lastDetailAt = at;
    this.#detailed.add(detail.id);
    const wasKnown = this.#usageScale.isKnown();
    const usage = this.#usageScale.normalize(detail);
    const isBadScale = wasKnown && !this.#usageScale.isKnown();
    if (isBadScale) this.#clearUsage();
    for (const name of USAGES) this.#columns.setNumber(name, slot, usage[name]);
    this.#priority.recordRead(slot, usage, at);
    return isBadScale ? "bad_scale" : "taken";
  }

  /** Records that a node's detail could not be read because of the node: it was not found, or others could be read. */
  recordDetailFailure(id: NodeId): void {
    const slot = this.#slots.get(id);
    if (slot !== undefined) this.#priority.recordFailure(slot);
  }

  /** Records that the service answered 404 for a node. If it lists the node, its 404s for other nodes prove nothing. */
  recordNotFound(id: NodeId): void {
    const slot = this.#slots.get(id);
    if (slot !== undefined && this.#absences.isListed(slot)) this.#lastDetailAt = null;
  }

  /** Returns when a detail was last read, or null if never, or if the service has answered 404 for a listed node since. */
  lastDetailAt(): MonotonicMs | null {
    return this.#lastDetailAt;
  }

  /** Whether the detail of every node has been read and none is failing. */
  hasDetail(): boolean {
    return this.#detailed.size === this.#slots.size && this.#priority.failingNodes() === 0;
  }

  /** Takes the node whose detail is due next; null if there is none. `roundMs` is the planned duration of a round. */
  takeNextDetail(now: MonotonicMs, roundMs: DurationMs): DetailPick | null {
    return this.#toDetailPick(this.#priority.takeNext(now, roundMs));
  }

  /** Takes any node, to find out whether the service returns its detail. Null if there are no nodes. */
  takeProbe(now: MonotonicMs): DetailPick | null {
    return this.#toDetailPick(this.#priority.takeProbe(now));
  }

  /**
   * Sets the nodes whose details policies wait for, and the time from which each is wanted. Replaces the previous ones.
   */
  setDetailDeadlines(deadlines: ReadonlyMap<NodeId, MonotonicMs>): void {
    const bySlot = new Map<number, MonotonicMs>();
    for (const [id, due] of deadlines) {
      const slot = this.#slots.get(id);
      if (slot !== undefined) bySlot.set(slot, due);
    }
    this.#priority.setPolicyDeadlines(bySlot);
  }

  /** Declares the usage scale, after a reload. If it changed, all usage is missing until it is read again. */
  declareScale(scale: UsageScale): void {
    if (this.#usageScale.declare(scale)) this.#clearUsage();
  }

  /** Returns an immutable copy. Columns that have not changed are shared with the previous copy. */
  currentFleet(): Fleet {
    return this.#columns.copy({
      count: this.#slots.size,
      locations: this.#locations.list(),
      usageKnown: this.#usageScale.isKnown(),
      ...this.#walks.latest(),
    });
  }

  #slotOf(id: NodeId): number {
    const known = this.#slots.get(id);
    if (known !== undefined) return known;
    const slot = this.#freeSlots.pop() ?? this.#columns.grow();
    this.#slots.set(id, slot);
    this.#priority.addNode(slot);
    this.#columns.clear(slot, id);
    this.#absences.addNode(slot);
    return slot;
  }

  #removeNode(id: NodeId, slot: number): void {
    this.#slots.delete(id);
    this.#priority.removeNode(slot);
    this.#detailed.delete(id);
    this.#hiddenSince.delete(id);
    this.#columns.clear(slot, "");
    this.#freeSlots.push(slot);
    this.#onRemoved(id);
  }

  /** Writes the fields of the list form, unless the record {@link NodeColumns.isOutdated}. Returns whether it did. */
  #writeRecord(slot: number, record: NodeRecord, at: MonotonicMs, source: "list" | "detail"): boolean {
    // Only the list can show that the service's clock was set back.
    const ignoredMs = source === "list" ? OLDER_RECORD_MS_MAX : Number.POSITIVE_INFINITY;
    if (this.#columns.isOutdated(slot, record, at, ignoredMs)) {
      this.#columns.recordOutdated(slot, record, at);
      return false;
    }
    const isNew = Number.isNaN(this.#columns.number("listedAt", slot));
    const known = isNew ? undefined : this.#locations.list()[this.#columns.location(slot)];
    this.#columns.setListed(slot, record, at);
    // Only the list changes a known location, and with it the node's limits: details may spell regions differently.
    const { country, region } = source === "list" ? mergeLocations(record, known) : mergeLocations(known, record);
    // Nearly all records show the same location.
    if (known?.country !== country || known.region !== region)
      this.#columns.setLocation(slot, this.#locations.index(country, region));
    return true;
  }

  /**
   * Returns whether the last_seen of a hidden node has been unchanged for so long that the service merely keeps its
   * record.
   */
  #isUnlistedTooLong(id: NodeId, slot: number, at: MonotonicMs): boolean {
    const lastSeenMs = this.#columns.number("lastSeenMs", slot);
    const hidden = this.#hiddenSince.get(id);
    if (hidden !== undefined && Object.is(hidden.lastSeenMs, lastSeenMs)) return at - hidden.since >= UNLISTED_MS_MAX;
    this.#hiddenSince.set(id, { lastSeenMs, since: at });
    return false;
  }

  #toDetailPick(pick: DetailChoice | null): DetailPick | null {
    return pick === null ? null : { id: this.#columns.id(pick.slot), cause: pick.cause };
  }

  #clearUsage(): void {
    this.#columns.clearUsage();
    this.#priority.forgetUsage();
  }
}
