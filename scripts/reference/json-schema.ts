import { z } from "zod";

/** A JSON Schema, or a part of one. */
export type JsonSchema = z.core.JSONSchema.JSONSchema;

/** Any value may also be a variable, which the loader replaces before it checks the value. */
const VARIABLE_SCHEMA: JsonSchema = {
  type: "string",
  pattern: "\\$\\{",
  description: "Filled in from the environment.",
};
/** The pattern of a text that must not be blank. */
const NON_BLANK_PATTERN = "\\S";
const VARIABLE_REF: JsonSchema = { $ref: "#/definitions/variable" };

/** Returns the JSON Schema of a file before defaults and transforms, in draft 7, which YAML editors support. */
export function jsonSchemaOf(schema: z.ZodType, title: string): JsonSchema {
  const { $schema, ...body } = z.toJSONSchema(schema, { target: "draft-7", io: "input" });
  return { $schema, title, ...withVariables(body), definitions: { variable: VARIABLE_SCHEMA } } as JsonSchema;
}

/** Allows a variable in place of every scalar of a schema. */
function withVariables(schema: JsonSchema): JsonSchema {
  if (schema.properties !== undefined) {
    const entries = Object.entries(schema.properties).map(([key, one]) => [key, branch(one)]);
    return { ...schema, properties: Object.fromEntries(entries) };
  }
  if (typeof schema.additionalProperties === "object") {
    return { ...schema, additionalProperties: branch(schema.additionalProperties) };
  }
  if (schema.anyOf !== undefined) return { ...schema, anyOf: schema.anyOf.map(withVariables) };
  if (schema.oneOf !== undefined) return { ...schema, oneOf: schema.oneOf.map(withVariables) };
  if (schema.items !== undefined) return { ...schema, items: branch(schema.items as JsonSchema) };
  // A constant distinguishes alternatives, so it can't be a variable. A text whose only restriction is that it must not be
  // blank accepts variables anyway.
  if (schema.const !== undefined || schema.type === "null") return schema;
  const isAnyText = schema.pattern === undefined || schema.pattern === NON_BLANK_PATTERN;
  if (schema.type === "string" && isAnyText && schema.enum === undefined) return schema;
  const { description, default: defaultValue, ...rest } = schema;
  const notes = {
    ...(description !== undefined && { description }),
    ...(defaultValue !== undefined && { default: defaultValue }),
  };
  return { ...notes, anyOf: [rest, VARIABLE_REF] };
}

const branch = (schema: z.core.JSONSchema._JSONSchema): z.core.JSONSchema._JSONSchema =>
  typeof schema === "boolean" ? schema : withVariables(schema);
