/**
 * Returns a value as JSON that PostgreSQL's jsonb accepts. NUL and halves of surrogate pairs, which the service may
 * send in names, are replaced by U+FFFD, as in text that is decoded from invalid bytes.
 */
export const toJsonText = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g, (sequence) =>
    sequence === "\\\\" ? sequence : "\ufffd",
  );
