/** Positions per block. With counts per block, a page among a million entries is found within microseconds. */
const BLOCK_SIZE = 512;
const EMPTY_POSITION = -1;

/** A set of groups, as bits: group 0 is 1, group 1 is 2, group 2 is 4. */
export type GroupMask = number;

/**
 * A list of members in the order of joining, each in one of a few groups. Reading a page iterates over the blocks
 * before it, not over their members.
 */
export interface GroupedList {
  /** Adds a new member, an integer below the capacity. */
  join(member: number, group: number): void;
  /** Moves a member to another group without changing its position. */
  regroup(member: number, from: number, to: number): void;
  leave(member: number, group: number): void;
  /** Returns the number of members of some groups. */
  count(groups: GroupMask): number;
  /** Returns up to `limit` members of some groups in order, after skipping `offset`. */
  page(groups: GroupMask, offset: number, limit: number): number[];
}

/** Creates an empty list for members below `capacity`, in groups below `groupCount` (at most 8). */
export function createGroupedList(capacity: number, groupCount: number): GroupedList {
  const length = Math.ceil((2 * capacity) / BLOCK_SIZE + 1) * BLOCK_SIZE;
  const order = new Int32Array(length);
  const groupOf = new Uint8Array(capacity);
  const positionOf = new Int32Array(capacity);
  const blockCounts = new Int32Array((length / BLOCK_SIZE) * groupCount);
  const totals = new Int32Array(groupCount);
  let end = 0;

  const count = (position: number, group: number, change: number): void => {
    blockCounts[Math.floor(position / BLOCK_SIZE) * groupCount + group]! += change;
    totals[group]! += change;
  };
  const append = (member: number, group: number): void => {
    order[end] = member;
    positionOf[member] = end;
    groupOf[member] = group;
    count(end, group, 1);
    end += 1;
  };
  // At most half of the positions hold a member, so at least `capacity` joins precede the next compaction.
  const compact = (): void => {
    const members = order.slice(0, end).filter((member) => member !== EMPTY_POSITION);
    blockCounts.fill(0);
    totals.fill(0);
    end = 0;
    for (const member of members) append(member, groupOf[member]!);
  };

  return {
    join(member, group) {
      if (end === length) compact();
      append(member, group);
    },
    regroup(member, from, to) {
      count(positionOf[member]!, from, -1);
      count(positionOf[member]!, to, 1);
      groupOf[member] = to;
    },
    leave(member, group) {
      count(positionOf[member]!, group, -1);
      order[positionOf[member]!] = EMPTY_POSITION;
    },
    count: (groups) => sum(totals, groups),
    page(groups, offset, limit) {
      const members: number[] = [];
      let skip = offset;
      for (let start = 0; start < end && members.length < limit; start += BLOCK_SIZE) {
        const inBlock = sum(blockCounts, groups, (start / BLOCK_SIZE) * groupCount);
        if (skip >= inBlock) {
          skip -= inBlock;
          continue;
        }
        const stop = Math.min(start + BLOCK_SIZE, end);
        for (let position = start; position < stop && members.length < limit; position += 1) {
          const member = order[position]!;
          if (member === EMPTY_POSITION || (groups & (1 << groupOf[member]!)) === 0) continue;
          if (skip > 0) skip -= 1;
          else members.push(member);
        }
      }
      return members;
    },
  };
}

/** Sums the counts of some groups. `from` is the index of the count of group 0. */
function sum(counts: Int32Array, groups: GroupMask, from = 0): number {
  let total = 0;
  for (let group = 0; groups >> group !== 0; group += 1) {
    if ((groups & (1 << group)) !== 0) total += counts[from + group]!;
  }
  return total;
}
