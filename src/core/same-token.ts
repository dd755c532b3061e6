/** Whether a token is the one that is known, in a time that does not tell how much of it was right. */
import { timingSafeEqual } from 'node:crypto'

/** Of another length, the known one is compared with itself: that takes as long. (Comparing digests instead takes ten times longer.) */
export function sameToken(known: string, given: string): boolean {
  const expected = Buffer.from(known)
  const found = Buffer.from(given)
  const sameLength = expected.length === found.length
  return timingSafeEqual(expected, sameLength ? found : expected) && sameLength
}
