/** An expected failure is a value: the caller sees both outcomes in the type. Broken invariants throw instead. */
export type Result<T, E> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

/** A success carrying `value`. */
export const ok = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });

/** A failure carrying `error`. */
export const fail = <E>(error: E): { readonly ok: false; readonly error: E } => ({ ok: false, error });
