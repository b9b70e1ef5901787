import type { Dialect } from "./journal-tables.ts";
import type { StateRow } from "./state-export.ts";

/** Beginnings of keys of facts, and what replaces them. The first match applies. */
const FACT_KEYS: readonly (readonly [from: string, to: string])[] = [
  ["warden.about.", "remediation.condition."],
  ["warden.acting", "remediation.acting_policies"],
  ["warden.began", "remediation.first_start"],
  ["warden.correlated", "remediation.incidents"],
  ["warden.credentials", "remediation.api_key_rejection"],
  ["warden.fallen.", "remediation.fallback."],
  ["warden.paused", "remediation.pause"],
  ["warden.proven.", "remediation.canary."],
  ["warden.sight_cooldown", "remediation.trust_cooldown"],
  ["warden.", "remediation."],
  ["collect.extent", "collect.network_size"],
];

/** Texts in the values of facts, and what replaces them. Keys don't occur in strings, whose quotes are escaped. */
const FACT_VALUES: Readonly<Record<string, readonly (readonly [from: string, to: string])[]>> = {
  "remediation.incidents": [
    ['"groups":', '"onsetGroups":'],
    ['"place":', '"domain":'],
    ['"shadow":', '"dryRun":'],
  ],
  "remediation.storm": [['"blowing":', '"isActive":']],
  "remediation.trust_cooldown": [["broken", "untrusted"]],
};

/** Returns the SQL that renames tables, keys of rows, and facts. */
export const applyRenames = ({ prefix: p, renamedKey }: Dialect): string => `
  ALTER TABLE ${p}orders RENAME TO operator_commands;
  DROP INDEX ${p}orders_by_node;
  DROP INDEX ${p}orders_by_time;
  CREATE INDEX operator_commands_by_node ON ${p}operator_commands (node, at);
  CREATE INDEX operator_commands_by_time ON ${p}operator_commands (at);
  UPDATE ${p}operator_commands SET body = ${renamedKey("order", "command")};
  UPDATE ${p}episodes SET body = ${renamedKey("shadow", "dryRun")};
  UPDATE ${p}actions SET body = ${renamedKey("shadow", "dryRun")};
  ${FACT_KEYS.map(
    ([from, to]) =>
      `UPDATE ${p}facts SET key = '${to}' || substr(key, ${from.length + 1}) WHERE substr(key, 1, ${from.length}) = '${from}';`,
  ).join("\n  ")}
  ${Object.entries(FACT_VALUES)
    .flatMap(([key, texts]) =>
      texts.map(
        ([from, to]) => `UPDATE ${p}facts SET value = replace(value, '${from}', '${to}') WHERE key = '${key}';`,
      ),
    )
    .join("\n  ")}`;

/** Does the same to a row of an exported state, whose kind is already the current one. */
export function renamedRow(row: StateRow): StateRow {
  switch (row.kind) {
    case "fact": {
      const [from, to] = FACT_KEYS.find(([from]) => row.key.startsWith(from)) ?? ["", ""];
      const key = to + row.key.slice(from.length);
      const value = (FACT_VALUES[key] ?? []).reduce((value, [from, to]) => value.replaceAll(from, to), row.value ?? "");
      return { ...row, key, value };
    }
    case "episode":
    case "action":
      return { ...row, row: withRenamedKey(row.row, "shadow", "dryRun") } as StateRow;
    case "command":
      return { ...row, row: withRenamedKey(row.row, "order", "command") };
    default:
      return row;
  }
}

const withRenamedKey = <T extends object>(row: T, from: string, to: keyof T): T => {
  const { [from]: value, ...rest } = row as Record<string, unknown>;
  return { ...rest, [to]: value } as T;
};
