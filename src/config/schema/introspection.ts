import type { z } from "zod";
import type { Path } from "../diagnostics/problem.ts";
import { type ValueKind, valueKinds } from "./value-types.ts";

/** Any zod schema, told apart by its `def.type`. */
type Schema = z.core.$ZodTypes;

/** Returns the schema of the value as written in the file, without defaults and before any transform. */
export function innermost(schema: z.core.$ZodType): Schema {
  const { def } = (schema as Schema)._zod;
  switch (def.type) {
    case "prefault":
    case "default":
    case "optional":
    case "nullable":
      return innermost(def.innerType);
    case "pipe":
      return innermost(def.in);
    default:
      return schema as Schema;
  }
}

/** Returns the kind of value that a key takes, or null for sections, lists and choices between shapes. */
export const kindOf = (schema: z.core.$ZodType): ValueKind | null => valueKinds.get(innermost(schema)) ?? null;

/** Returns the schema of each key of a section, or null if the schema is not a section. */
export function sectionKeys(schema: z.core.$ZodType): Readonly<Record<string, z.core.$ZodType>> | null {
  const { def } = innermost(schema)._zod;
  return def.type === "object" ? def.shape : null;
}

/** Returns the alternatives of a choice, or null if the schema is not a choice. */
export function alternatives(schema: z.core.$ZodType): readonly z.core.$ZodType[] | null {
  const { def } = innermost(schema)._zod;
  return def.type === "union" ? def.options : null;
}

/** Returns the schema at `path`, or null if there is none. `value` selects between alternatives. */
export function schemaAt(schema: z.core.$ZodType, path: Path, value: unknown): z.core.$ZodType | null {
  const options = alternatives(schema);
  if (options !== null) {
    const chosen = options.find((option) => matchesAlternative(option, value));
    return chosen === undefined ? (path.length === 0 ? schema : null) : schemaAt(chosen, path, value);
  }
  const [step, ...rest] = path;
  if (step === undefined) return schema;
  const next = schemaWithin(innermost(schema)._zod.def, step);
  return next && schemaAt(next, rest, (value as Record<string | number, unknown> | null)?.[step]);
}

/** Returns the schema of a key or an item, or null if there is none. */
function schemaWithin(def: Schema["_zod"]["def"], step: string | number): z.core.$ZodType | null {
  if (typeof step === "number") return def.type === "array" ? def.element : null;
  if (def.type === "record") return def.valueType;
  return def.type === "object" && Object.hasOwn(def.shape, step) ? def.shape[step]! : null;
}

/**
 * Returns whether `value` is meant for an alternative, judging by its type and by the keys that have only one valid
 * value.
 */
function matchesAlternative(option: z.core.$ZodType, value: unknown): boolean {
  const keys = sectionKeys(option);
  if (keys === null) return typeof value !== "object";
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(keys).every(([key, schema]) => {
    const { def } = innermost(schema)._zod;
    const isDiscriminator = def.type === "literal" && def.values.length === 1;
    return !isDiscriminator || def.values[0] === (value as Record<string, unknown>)[key];
  });
}
