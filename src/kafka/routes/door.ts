/**
 * Who may use the Kafka API. It has tokens of its own, which are good for nothing else; those of the server are good here too, as far
 * as their role goes. Whoever has neither learns nothing: not even whether a path or a service exists. There is no open door, also not
 * on this machine.
 */
import type { TokenEntry } from '../../config/index.ts'
import { BartlebyError } from '../../core/errors.ts'
import { authenticator, type Caller, knownTokens, type Role, requireRole } from '../../http/auth.ts'

/** Whom a request comes from, by the name that history knows; or why it does not pass. */
export type Admission =
  | { readonly actor: string }
  | { readonly refused: 'unauthenticated' | 'wrong_token' | 'role_too_low' }

/** Decides by an `Authorization` header, and by the role that tokens of the server need; `visitor` came with a session instead. */
export type Door = (authorization: string | undefined, needed: Role, visitor?: Caller) => Admission

const CREDENTIALS = /^([!-~]+) +(.+)$/

/** `hashes` are the tokens of the Kafka part; `tokens` those of the server. */
export function doorOf(hashes: readonly string[], tokens: readonly TokenEntry[]): Door {
  // Without any tokens the server trusts everybody; this API does not.
  const authenticate = authenticator(knownTokens(tokens, hashes), null)
  return (authorization, needed, visitor) => {
    if (authorization === undefined && visitor !== undefined) return admitByRole(() => visitor, needed)
    const [, scheme, token] = CREDENTIALS.exec(authorization?.trim() ?? '') ?? []
    if (scheme?.toLowerCase() !== 'bearer' || token === undefined) return { refused: 'unauthenticated' }
    // Headers arrive byte by byte: these are the bytes of the token as they were sent.
    const sent = Buffer.from(token, 'latin1').toString()
    return admitByRole(() => authenticate(`Bearer ${sent}`), needed)
  }
}

function admitByRole(identify: () => Caller, needed: Role): Admission {
  try {
    const caller = identify()
    requireRole(caller, needed)
    return { actor: caller.name }
  } catch (error) {
    if (!(error instanceof BartlebyError)) throw error
    return { refused: error.code === 'role_insufficient' ? 'role_too_low' : 'wrong_token' }
  }
}
