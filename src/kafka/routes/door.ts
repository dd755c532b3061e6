/**
 * Who may use the Kafka API. It has tokens of its own, which are good for nothing else; those of the server are good here too, as far
 * as their role goes. Whoever has neither learns nothing: not even whether a path or a service exists. There is no open door, also not
 * on this machine.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import type { TokenEntry } from '../../config/index.ts'
import { BartlebyError } from '../../core/errors.ts'
import { type Authenticate, authenticator, type Caller, type Role, requireRole } from '../../http/auth.ts'

/** Whom a request comes from, by the name that history knows; or why it does not pass. */
export type Admission =
  | { readonly actor: string }
  | { readonly refused: 'unauthenticated' | 'wrong_token' | 'role_too_low' }

const CREDENTIALS = /^([!-~]+) +(.+)$/

export class Door {
  readonly #hashes: readonly Buffer[]
  readonly #authenticate: Authenticate | null

  /** `hashes` are the tokens of the Kafka part; `tokens` those of the server. */
  constructor(hashes: readonly string[], tokens: readonly TokenEntry[]) {
    this.#hashes = hashes.map((hex) => Buffer.from(hex, 'hex'))
    // Without any tokens the server trusts everybody; this API does not.
    this.#authenticate = tokens.length === 0 ? null : authenticator(tokens)
  }

  /** Decides by an `Authorization` header, and by the role that tokens of the server need; `visitor` came with a session instead. */
  admit(authorization: string | undefined, needed: Role, visitor?: Caller): Admission {
    if (authorization === undefined && visitor !== undefined) return admitByRole(() => visitor, needed)
    const [, scheme, token] = CREDENTIALS.exec(authorization?.trim() ?? '') ?? []
    if (scheme?.toLowerCase() !== 'bearer' || token === undefined) return { refused: 'unauthenticated' }
    const number = this.#numberOf(token)
    if (number > 0) return { actor: `token#${number}` }
    return admitByRole(() => this.#authenticate?.(`Bearer ${token}`), needed)
  }

  /** Counted from one; 0 when it is none of them. No early end: the time taken must not depend on which one it is. */
  #numberOf(token: string): number {
    // Headers arrive byte by byte: these are the bytes of the token as they were sent.
    const digest = hash('sha256', Buffer.from(token, 'latin1'), 'buffer')
    let found = 0
    for (const [index, known] of this.#hashes.entries()) {
      if (timingSafeEqual(known, digest)) found = index + 1
    }
    return found
  }
}

function admitByRole(identify: () => Caller | undefined, needed: Role): Admission {
  try {
    const caller = identify()
    if (caller === undefined) return { refused: 'wrong_token' }
    requireRole(caller, needed)
    return { actor: caller.name }
  } catch (error) {
    if (!(error instanceof BartlebyError)) throw error
    return { refused: error.code === 'role_insufficient' ? 'role_too_low' : 'wrong_token' }
  }
}
