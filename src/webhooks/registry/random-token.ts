/** Tokens of producers, channels and consumers that were given none. */
import { randomInt } from 'node:crypto'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const CHARACTERS = 12

/** Twelve letters and digits from a cryptographic source, each as likely as any other: `randomInt` has no bias. */
export const randomToken = (): string =>
  Array.from({ length: CHARACTERS }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('')
