/** The bounds of repairs: what one letter may cost, and what is said of one that costs more. */

/** More bytes than this no payload has, before its repair and after it. */
export const MOST_PAYLOAD_BYTES = 16 * 1_048_576
/** Work on one letter. */
export const LETTER_MS = 1_000

/** What is said of a letter whose repair gives more. */
export const TOO_LARGE = 'the payload would be larger than 16 MiB'
/** What is said of a letter whose time is up. */
export const TOO_LONG = `the repair took longer than ${LETTER_MS / 1_000} s`
/** What is said of a letter whose repair was ended by the bounds of its process. */
export const TOO_MUCH_MEMORY = 'the repair used too much memory'

/** The exit code of the process when its thread has run out of memory. */
export const OUT_OF_MEMORY = 12
