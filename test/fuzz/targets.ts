/** A target, and how many of a million cases it gets. */
export interface TargetRow {
  readonly name: string;
  readonly module: string;
  /** Cases of a million; all of them together are a million. */
  readonly perMillion: number;
}

const row = (name: string, perMillion: number): TargetRow => ({
  name,
  module: new URL(`.//${name}-target.ts`, import.meta.url).href,
  perMillion,
});

/** Every target. The cheaper a case is, the more there are. */
export const TARGETS: readonly TargetRow[] = [
  row("record", 450_000),
  row("peer", 310_000),
  row("expression", 110_000),
  row("client", 80_000),
  row("config", 20_000),
  row("web", 22_000),
  row("transport", 7_500),
  row("daemon", 500),
];
