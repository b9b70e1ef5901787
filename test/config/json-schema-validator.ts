import { fastify } from "fastify";

/**
 * Judges values by a JSON Schema with a validator that is not ours: the one inside fastify. Null: the value is fine.
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
