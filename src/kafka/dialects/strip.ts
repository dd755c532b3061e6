/** Which headers must not travel on when a record is sent back as it was: what tools wrote on its way to the dead letters. */
import { fits } from '../names.ts'
import { headerOf, PREFIXES } from './families.ts'

/** Java objects that Spring leaves behind where it could not read a record. */
const SPRING_FAILURE = 'springDeserializerException'

/**
 * Whether a header is left out. Prefixes that belong to a tool are, whoever was recognised: a record can have gone through several
 * tools, and counters of attempts that stay would end the next one early.
 */
export const isStrippedHeader = (
  family: string | null,
  name: string,
  stripHeaders: readonly string[],
): boolean =>
  headerOf(family, name) !== undefined ||
  PREFIXES.some((prefix) => name.startsWith(prefix)) ||
  name.startsWith(SPRING_FAILURE) ||
  stripHeaders.some((pattern) => fits(pattern, name))
