/** Compares tokens in a time that does not tell how much was right. */
import { timingSafeEqual } from 'node:crypto'

/** At another length the known token is compared with itself. Comparing digests takes ten times longer. */
export function sameToken(known: string, given: string): boolean {
  const expected = Buffer.from(known)
  const found = Buffer.from(given)
  const sameLength = expected.length === found.length
  return timingSafeEqual(expected, sameLength ? found : expected) && sameLength
}
