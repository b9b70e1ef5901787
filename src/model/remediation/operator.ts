import type { Secret } from "../ports.ts";

/** A person who may give orders, by a token of their own. */
export interface Operator {
  readonly name: string;
  readonly token: Secret;
}
