/** What producers, channels and consumers have in common: a public id, a name and a token. */
import { randomToken } from './random-token.ts'
import { given } from './texts.ts'

/** What shall be there. */
export interface HolderDraft {
  readonly publicId: string
  readonly name: string
  readonly token: string
  /** The token is for a new one only: one that exists keeps its own. */
  readonly keepsToken: boolean
}

/** The draft of a request: the name defaults to the id, the token to a random one. */
export const draftOf = (publicId: string, name: string | null, token: string | null): HolderDraft => ({
  publicId,
  name: given(name) ?? publicId,
  token: given(token) ?? randomToken(),
  keepsToken: false,
})
