import { HEARTBEAT_MS } from "../../src/simulator/fleet/node.ts";
import { BAD_DETAILS, CHURN_EVERY_MS, LIST_SHARE, PAGE_SIZE, PAGE_SIZE_OF_CHURN } from "./cell.ts";
import type { Contest } from "./contest.ts";
import { cellTable, duration, judgementTable, showingTables } from "./report.ts";
import { LINGERING, THRESHOLD } from "./script.ts";

/** docs/freshness.md, whole. Nothing in it depends on the machine or the time of day. */
export function freshnessDocument(contests: readonly Contest[], seed: number): string {
  const cells = contests.map(({ cell }) => cell);
  const faults = cells[0]?.faults ?? 0;
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  return `# How soon trouble is found

Written by \`npm run bench:freshness\` (seed ${seed}); not edited by hand. It runs in virtual time over the simulated
service, and gives the same numbers on every machine. It fails if a target is missed.

## What is compared

Everybody has the same fleet, the same faults, the same limits and the same wishes: the list once a minute, and details
no older than a minute, which is more than the limits carry nearly everywhere. So there is a use for every call. Sessions
and statistics are read by nobody.

- **proxywarden** is the engine as it runs in the daemon, from the permit office to the snapshots: a fault is found when
  the snapshot that metrics and policies read shows it. Its policies read the
  status, and each usage against ${THRESHOLD}.
- **even** is what a careful person would write: it keeps the reserve and the month, spends up to ${percent(LIST_SHARE)} of its calls on
  lists and the rest on details, as ours does, all evenly spaced, node by node in the order of the list: details compare
  on the same calls.
- **naive** walks the list each minute and reads details round robin, four calls at a time, as fast as it is let; a call
  that was answered 429 waits for Retry-After. Where it has spent the month's calls before half of the month is over, it
  finds most faults never; its times until then are in brackets.
- **oracle** is the lower bound. It knows where a fault is and reads that node at the first moment that the limits, the
  reserve and the month, spent evenly, permit. Offline nodes it finds by the list, as that is read: no more often than
  wished, and than whole walks can be paid for if nothing else is read; but its first page is the right one. (A read of a
  detail shows the status as well, so that others may find an offline node a little sooner.)

What polling may spend is the limit less the reserve of 20 %, and 99 % of the month: the last hundredth is kept for
actions. A month has 30 days. Pages hold ${PAGE_SIZE.toLocaleString("en")} nodes unless stated otherwise below.

Enterprise's requests a minute are "custom" in the service's interface; here they are 2,000. Its table of limits by
category still says 100 node calls a minute, for every plan. Read to the letter, that is what binds; a contract of 2,000
that leaves 1,400 of them to nobody is an odd one, so the other reading raises the node calls to 2,000 as well
(\`limits.node_management: {requests: 2000, burst: 4000}\`). Both are shown.

## Other conditions

Two more cells repeat one of the cells above under harder conditions. Every contender meets the same conditions, and the
targets are those of the repeated cell. \`npm run bench:freshness -- --conditions churn\` (or \`bad_details\`) plays one of
them alone.

- *Nodes join and leave*: on average one node joins and one node leaves every ${duration(CHURN_EVERY_MS)}. The list is sorted by creation date,
  newest first, so each join moves every record down by one. Pages hold ${PAGE_SIZE_OF_CHURN} nodes, so that the list often changes
  while it is read. *even* and *naive* learn of joins and leaves at once, which favours them. Two targets are added,
  because the others do not depend on complete walks. The inventory of proxywarden differs from the fleet by at most 1 %
  at any time, counting nodes that it lacks and nodes that it keeps although they left. And the list is always fresh
  enough for \`/metrics\` to show the nodes.
- *${percent(BAD_DETAILS.at(-1)!.share)} of details fail*: from the start, reads of the details of these nodes return 404, 200 with a body that
  is not a node, or 500, about a third of the nodes each. The list still shows these nodes. A call for such a
  node is spent in vain.

In both cells the faults happen on nodes that stay in the fleet and have readable details, and the median age is that of
the same nodes.

## The faults

Times are counted from the moment at which a read would first have shown the fault; nodes report every
${duration(HEARTBEAT_MS)}.

- *Offline*: the node ceases to respond.
- *Usage creeps*: cpu, memory or disk rises evenly from its healthy level past ${THRESHOLD}, over 1.5 to 3.5 rounds of the even
  poller. What creeps faster than anybody looks is a jump to everybody, and is told there.
- *Usage jumps as the node restarts*: the list shows that its uptime began anew. Three times as many restarts mean nothing.
- *Usage jumps without a sign*: nothing but the next read of the node can find it. As nobody's reads depend on such a jump
  before it is found, none has to be made to happen: 4,000 moments on nodes that are well are drawn, and the next read of
  that node is what would have found it.

There are ${faults} creeps and as many signalled jumps in each cell, and up to ${3 * faults} offline nodes; every node has one fault at
most. To keep suspicion honest, ${percent(LINGERING.share)} of the
nodes linger between ${LINGERING.min} and ${LINGERING.max} of one usage, and never pass the threshold. A fault that was not found while it lasted
counts as never found: \`>\`. Where a round takes days the simulation ends before it: those rows are kept, and say little
but that.

${cellTable(cells)}

## What must be reached

${judgementTable(contests)}

## What each did

Times until a fault was found: median · 95th percentile.

${showingTables(contests)}
`;
}
