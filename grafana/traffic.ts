import { placed, type Query, rate } from "./query.ts";

type Direction = "sent" | "received";

/** Sessions are walked more rarely than nodes are scraped: rates are taken over four minutes at least. */
export const SESSION_STEP = "1m";

/** Bytes a second of the nodes at the places shown. `by`: the labels that stay; none: all is summed. */
export const bytesPerSecond = (by: string, legend: string | undefined, ...directions: readonly Direction[]): Query => {
  const rates = directions.map((direction) => rate(`proxynet_session_${direction}_bytes_total`)).join(" + ");
  const sum = by === "" ? "sum" : `sum by (${by})`;
  return {
    expr: `${sum} (\n  ${placed(directions.length === 1 ? rates : `(${rates})`, "region", "country")}\n)`,
    step: SESSION_STEP,
    ...(legend === undefined ? {} : { legend }),
  };
};
