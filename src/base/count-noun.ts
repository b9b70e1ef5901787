/** Returns a count and its noun, such as `1 node` or `2 nodes`. */
export const countNoun = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
