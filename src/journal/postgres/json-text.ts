/**
 * Returns a value as JSON that PostgreSQL's jsonb accepts: it has no NUL and no half of a surrogate pair, which the
 * service may send in names. U+FFFD takes their place, as in text that is decoded from invalid bytes.
 */
export const toJsonText = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g, (sequence) =>
    sequence === "\\\\" ? sequence : "\ufffd",
  );
