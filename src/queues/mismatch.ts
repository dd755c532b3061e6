/**
 * Items were not as the cycle believed when it came to write: gone, or no longer leased. Its transaction must
 * not be committed; it is run again on what the store says now.
 */
export class Mismatch extends Error {
  override readonly name = 'Mismatch'
}

/** Insists that a statement found every item it was meant for. */
export function insistOn(expected: number, found: number): void {
  if (found !== expected) throw new Mismatch(`${found} of ${expected} items were as expected`)
}
