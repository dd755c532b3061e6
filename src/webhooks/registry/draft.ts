/** What a producer, a channel or a consumer shall be. */
import { randomInt } from 'node:crypto'
import type { Value } from '../../db/database.ts'
import { given } from './texts.ts'

export interface Draft {
  readonly name: string
  readonly token: string
  /** The token is for a new one only: one that exists keeps its own. */
  readonly keepsToken: boolean
  /** The values of the columns that only its kind has. */
  readonly own: readonly Value[]
}

/** The draft of a request: the name defaults to the id, the token to a random one. */
export const draftOf = (
  publicId: string,
  { name, token }: { readonly name?: string | null; readonly token?: string | null },
  own: readonly Value[] = [],
): Draft => ({
  name: given(name) ?? publicId,
  token: given(token) ?? randomToken(),
  keepsToken: false,
  own,
})

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const CHARACTERS = 12

/** Twelve letters and digits from a cryptographic source, each as likely as any other: `randomInt` has no bias. */
const randomToken = (): string =>
  Array.from({ length: CHARACTERS }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('')
