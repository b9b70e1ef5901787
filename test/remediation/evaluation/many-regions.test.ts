import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { LABEL_CAPS } from "../../../src/model/label-values.ts";
import { startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../harness/policies.ts";
import { nodesActedOn } from "../../harness/remediation-results.ts";
import { changingBodies } from "../../harness/simulator/changed-responses.ts";

/** More regions than `proxynet_nodes` has series for. */
const NODES = LABEL_CAPS.proxynet_nodes.values + 100;

type Body = Readonly<Record<string, unknown>>;

const regionOf = (id: unknown): string => `region of ${id}`;
const inOwnRegion = (node: Body) => ({ ...node, region: regionOf(node.id) });

/** A network in which each node has a region of its own, such as a city or a rack. */
const wrapTransport = changingBodies((body, { method }) => {
  if (method === "POST") return null;
  const json = JSON.parse(body) as Body & { readonly data?: readonly Body[] };
  return JSON.stringify(json.data === undefined ? inOwnRegion(json) : { ...json, data: json.data.map(inOwnRegion) });
});

test("policies and safety.protected read the region of each node, however many there are", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([]), scenario: { nodes: NODES }, wrapTransport });
  const [isProtected, isMatched, isOther] = network.nodes().slice(-3);
  const match = `node.region != "${regionOf(isOther)}"`;
  const safety = { ...withoutLimits, protected: `node.region == "${regionOf(isProtected)}"` };
  await network.reload({ config: remediationConfig([rebootOffline({ match })], safety) });
  for (const node of [isProtected, isMatched, isOther]) network.failNode(node!);
  await network.advance(20 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([isMatched]);
  expect(network.holdReasons(isProtected!)).toEqual(["protected"]);
});
