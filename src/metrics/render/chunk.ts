/**
 * Finished bytes of the page. Whoever reads them later than at once holds them; bytes that are held are never written
 * to, those that nobody holds any more go back to where they came from.
 */
export interface Piece {
  readonly bytes: Uint8Array;
  holders: number;
  /** Takes the memory back for a later rendering; null if there is nothing to save. */
  readonly recycle: (() => void) | null;
}

/** A piece with one holder. */
export const createPiece = (bytes: Uint8Array, recycle: Piece["recycle"] = null): Piece => ({
  bytes,
  holders: 1,
  recycle,
});

/** Adds a reference. Throws if there is none left: the bytes may already be overwritten. */
export function hold(piece: Piece): void {
  if (piece.holders <= 0) throw new Error("a piece that nobody holds can't be held again");
  piece.holders++;
}

/** Takes one holder away. */
export function release(piece: Piece): void {
  piece.holders--;
  if (piece.holders < 0) throw new Error("a piece was released more often than it was held");
  if (piece.holders === 0) piece.recycle?.();
}
