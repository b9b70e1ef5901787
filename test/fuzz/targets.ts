/** A target and its share of the cases. */
export interface TargetRow {
  readonly name: string;
  readonly module: string;
  /** Cases out of a million. */
  readonly perMillion: number;
}

const row = (name: string, perMillion: number): TargetRow => ({
  name,
  module: new URL(`./targets/${name}-target.ts`, import.meta.url).href,
  perMillion,
});

/** All targets. Targets with cheap cases have more of them. */
export const TARGETS: readonly TargetRow[] = [
  row("record", 450_000),
  row("integration", 310_000),
  row("expression", 110_000),
  row("client", 80_000),
  row("config", 20_000),
  row("web", 22_000),
  row("transport", 7_500),
  row("daemon", 500),
];
