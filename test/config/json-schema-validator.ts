import { fastify } from "fastify";

/**
 * Returns a function that validates a value against a JSON Schema with the validator in fastify, and resolves to the
 * error, or to null if the value is valid.
 */
export async function validatorOf(schema: object): Promise<(value: unknown) => Promise<string | null>> {
  const customOptions = { coerceTypes: false, removeAdditional: false, useDefaults: false } as const;
  const server = fastify({ ajv: { customOptions } });
  server.post("/", { schema: { body: schema } }, () => "fine");
  await server.ready();
  return async (value) => {
    const payload = JSON.stringify(value);
    const headers = { "content-type": "application/json" };
    const answer = await server.inject({ method: "POST", url: "/", headers, payload });
    return answer.statusCode === 200 ? null : answer.body;
  };
}
