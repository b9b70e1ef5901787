import { placed, type Query, rate } from "./query.ts";

type Direction = "sent" | "received";

/** Sessions are walked less often than they are scraped, so rates use at least four minutes. */
export const SESSION_STEP = "1m";

/** Bytes per second of the selected nodes. `by`: labels to keep; empty: the sum over all. */
export const bytesPerSecond = (by: string, legend: string | undefined, ...directions: readonly Direction[]): Query => {
  const rates = directions.map((direction) => rate(`proxynet_session_${direction}_bytes_total`)).join(" + ");
  const sum = by === "" ? "sum" : `sum by (${by})`;
  return {
    expr: `${sum} (\n  ${placed(directions.length === 1 ? rates : `(${rates})`, "region", "country")}\n)`,
    step: SESSION_STEP,
    ...(legend === undefined ? {} : { legend }),
  };
};
